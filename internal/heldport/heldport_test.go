package heldport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// Servers come and go at an address that is held. In between nothing answers there, and it stays taken for others.
func TestServersComeAndGo(t *testing.T) {
	held := Address(t)
	for range 3 {
		if c, err := net.Dial("tcp", held); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("without a server: %v %v", c, err)
		}
		if !taken(t, held) {
			t.Fatalf("%s is given to others while no server is there", held)
		}
		l, err := net.Listen("tcp", held)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", held)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		_ = l.Close()
	}
}

// taken binds an address as the kernel does when it looks for a free port: without sharing it.
func taken(t *testing.T, address string) bool {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(s)
	err = syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: a.Port})
	return errors.Is(err, syscall.EADDRINUSE)
}
