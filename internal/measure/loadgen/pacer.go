package loadgen

import (
	"context"
	"runtime"
	"time"
)

// maxSpin is the longest wait that yields the processor instead of sleeping.
const maxSpin = 30 * time.Microsecond

// sleeper sleeps until an instant. It may wake up early.
type sleeper interface {
	sleepUntil(t time.Time)
	close()
}

// pacer waits for the instants of a schedule.
type pacer struct {
	s    sleeper
	spin time.Duration
}

func newPacer() *pacer { return &pacer{s: newSleeper(), spin: maxSpin} }

func (p *pacer) close() { p.s.close() }

// wait returns at t or as soon as possible after it. It returns early, with an error, when ctx ends, which it checks at
// least twenty times a second.
func (p *pacer) wait(ctx context.Context, t time.Time) error {
	const look = 50 * time.Millisecond
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := time.Until(t)
		switch {
		case left <= 0:
			return nil
		case left <= p.spin:
			runtime.Gosched()
		case left <= look:
			p.s.sleepUntil(t)
		default:
			p.s.sleepUntil(time.Now().Add(look))
		}
	}
}

// timerSleeper sleeps by the runtime's timers.
type timerSleeper struct{}

func (timerSleeper) sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
func (timerSleeper) close()                 {}
