package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// stopSignals turns SIGINT, SIGTERM and SIGHUP, which a terminal sends that closes, into values. The first one ends the
// context. The second one closes the channel of hurry, if that was called before, and ends the process otherwise. The
// next one ends the process.
func stopSignals() (ctx context.Context, hurry func() <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	second := make(chan struct{})
	var wanted atomic.Bool
	go func() {
		<-signals
		if !wanted.Load() {
			signal.Stop(signals)
		}
		stop()
		<-signals
		signal.Stop(signals)
		close(second)
	}()
	return ctx, func() <-chan struct{} {
		wanted.Store(true)
		return second
	}
}
