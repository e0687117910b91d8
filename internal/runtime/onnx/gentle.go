//go:build cgo

package onnx

import (
	"context"
	"sync/atomic"
	"time"
)

// activity knows whether batches run in this process: loads then give way to them.
type activity struct {
	running atomic.Int32
	ended   atomic.Int64 // when the last batch ended, in ns since the epoch
}

const (
	// quiet is how long no batch has run where nobody is served.
	quiet = 2 * time.Second
	// longestGiving is how long a run that warms a variant up waits for a moment without batches, and lookEvery how
	// often it looks for one.
	longestGiving, lookEvery = 250 * time.Millisecond, time.Millisecond
	// longestWarming is the longest run that warms a variant up while others are served: a batch that comes meanwhile
	// shares its cores.
	longestWarming = 10 * time.Millisecond
)

func (a *activity) begin() { a.running.Add(1) }

func (a *activity) end() {
	a.ended.Store(time.Now().UnixNano())
	a.running.Add(-1)
}

// serves reports whether batches run, or ran a moment ago.
func (a *activity) serves() bool {
	return a.running.Load() > 0 || time.Since(time.Unix(0, a.ended.Load())) < quiet
}

// giveWay returns when no batch runs, after longestGiving, or with ctx's error.
func (a *activity) giveWay(ctx context.Context) error {
	for until := time.Now().Add(longestGiving); a.running.Load() > 0 && time.Now().Before(until); {
		time.Sleep(lookEvery)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
