//go:build unix

package cli

import (
	"os/signal"
	"syscall"
	"testing"
)

// A terminal that closes ends a server as SIGTERM does: what was accepted is answered first.
func TestHangingUpStops(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("nohup runs this test")
	}
	ctx, _ := stopSignals()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
