// Package heldport keeps a port of the loopback for servers of a test that come and go: nobody else is given it.
package heldport

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// Address returns an address of the loopback that is the test's own until it ends.
//
// Its port is bound and not listened on. So the kernel gives it to no listener on port 0 and to no connection, and a
// program that binds it by number, with SO_REUSEADDR as Go does, may listen on it, as often as it is started. While
// nothing listens, connections to it are refused.
func Address(t testing.TB) string {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("socket", err))
	}
	syscall.CloseOnExec(s)
	t.Cleanup(func() { _ = syscall.Close(s) })
	if err := syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(os.NewSyscallError("setsockopt", err))
	}
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(os.NewSyscallError("bind", err))
	}
	name, err := syscall.Getsockname(s)
	if err != nil {
		t.Fatal(os.NewSyscallError("getsockname", err))
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(name.(*syscall.SockaddrInet4).Port))
}
