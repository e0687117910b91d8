package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
)

// stormFault is what is wrong with a worker.
type stormFault int

const (
	isWell stormFault = iota
	runsFail
	runsHang // until their context ends
	runsPanic
	runsSlow
	runsLost // with the instance
	loadsFail
	loadsHang
	stormFaults
)

var errStorm = errors.New("broken on purpose")

// stormWeather is what is wrong with each worker, now.
type stormWeather struct {
	mu    sync.Mutex
	fault map[serving.WorkerID]stormFault
	until map[serving.WorkerID]time.Time
}

// set has a worker fail for a time.
func (w *stormWeather) set(on serving.WorkerID, f stormFault, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault[on], w.until[on] = f, time.Now().Add(d)
}

func (w *stormWeather) of(on serving.WorkerID) stormFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().After(w.until[on]) {
		return isWell
	}
	return w.fault[on]
}

// over is a worker in this weather. A run and a load take some time, too, that the real runtime takes none of on a
// virtual clock.
func (w *stormWeather) over(on serving.WorkerID, b dataplane.Backend) dataplane.Backend {
	return &stormBackend{b, w, on}
}

type stormBackend struct {
	dataplane.Backend
	weather *stormWeather
	on      serving.WorkerID
}

func (b *stormBackend) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	r, err := b.Backend.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	return &stormRunner{r, b}, nil
}

func (b *stormBackend) load(ctx context.Context) error {
	switch b.weather.of(b.on) {
	case loadsFail:
		return errStorm
	case loadsHang: // until the data plane gives up
		<-ctx.Done()
		return ctx.Err()
	}
	return stormPause(ctx, 30*time.Millisecond)
}

type stormRunner struct {
	dataplane.Runner
	b *stormBackend
}

func (r *stormRunner) Load(ctx context.Context, v serving.VariantID, limit int) error {
	if err := r.b.load(ctx); err != nil {
		return err
	}
	return r.Runner.Load(ctx, v, limit)
}

func (r *stormRunner) Run(ctx context.Context, b *dataplane.Batch) error {
	took := 4*time.Millisecond + time.Duration(b.Items)*time.Millisecond
	switch r.b.weather.of(r.b.on) {
	case runsFail:
		return errStorm
	case runsHang:
		<-ctx.Done()
		return ctx.Err()
	case runsPanic:
		panic("a runtime in trouble, on purpose")
	case runsSlow:
		took *= 20
	case runsLost:
		return errors.Join(errStorm, dataplane.ErrInstanceLost)
	}
	if err := stormPause(ctx, took); err != nil {
		return err
	}
	return r.Runner.Run(ctx, b)
}

func stormPause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
