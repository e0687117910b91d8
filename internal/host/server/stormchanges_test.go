package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Besides what it adds, a change may have a model be:
const (
	gone = -1 // none
	same = -2 // what its file is
	junk = -3 // nothing that can be loaded
)

// stormCall is a request.
type stormCall struct {
	method, path string
	body         []byte
}

// change has a model or function become what adds a number by a write and calls, once the earlier changes of it are
// over.
func (w *storm) change(name string, number int, write func(), calls ...stormCall) {
	l, x := w.life, w.names[name]
	w.changes.Go(func() {
		ctx, done := context.WithTimeout(l.calls, stormWait)
		defer done()
		select {
		case x.turn <- struct{}{}:
			defer func() { <-x.turn }()
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		if l.dead || ctx.Err() != nil {
			w.mu.Unlock()
			return
		}
		if write != nil {
			w.disk.with(write)
			x.file = number
		}
		if number == same {
			number = x.file
		}
		at := len(x.numbers)
		if number != junk { // what was served before stays
			x.numbers = append(x.numbers, number)
		}
		w.mu.Unlock()
		var code int
		var said string
		for _, c := range calls {
			if code, said = w.call(ctx, l, c.method, c.path, c.body); code != http.StatusOK {
				break
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case l.dead || code != http.StatusOK:
		case number == junk:
			w.failed = append(w.failed, fmt.Sprintf("%s: a file that is no model was loaded: %s", name, said))
		default:
			if x.sure = at; number == gone {
				x.deleted = at
			}
			w.counts.Changes++
		}
	})
}

// calm waits until faults are over, and looks whether all is as it was acknowledged.
func (w *storm) calm() {
	for on := range stormNames {
		w.weather.set(serving.WorkerID(on), isWell, 0)
	}
	end := time.Now().Add(stormCalm)
	for name, x := range w.names {
		// A change that has failed since may have come half the way, and what is served from a file that is broken now
		// is lost with its instance.
		if x.sure < len(x.numbers)-1 || x.file == junk {
			continue
		}
		number := x.numbers[x.sure]
		ask := func() (code int, ok bool) {
			code, added := w.infer(context.Background(), w.life, name, 1)
			return code, (code == http.StatusOK) == (number != gone) && (number == gone || added == float32(number))
		}
		code, ok := ask()
		for !ok && time.Now().Before(end) {
			time.Sleep(time.Second)
			code, ok = ask()
		}
		// Planners of papers leave an app without a machine where its demand is small or machines are few.
		if !ok && !w.script.fixed && (code != http.StatusServiceUnavailable || w.script.serves) {
			w.fail("in calm weather, a query of %s, which %d was acknowledged for, gets %d", name, number, code)
		}
	}
	code, text := w.call(context.Background(), w.life, "GET", "/v2/health/ready", nil)
	for code != http.StatusOK && time.Now().Before(end) { // what was deployed last may still be on its way
		time.Sleep(time.Second)
		code, text = w.call(context.Background(), w.life, "GET", "/v2/health/ready", nil)
	}
	if code != http.StatusOK {
		w.fail("in calm weather it is not ready: %s", text)
	}
	for name := range w.names {
		ready, _ := w.call(context.Background(), w.life, "GET", "/v2/models/"+name+"/ready", nil)
		if ready != http.StatusOK {
			continue
		}
		if code, _ := w.infer(context.Background(), w.life, name, 1); code != http.StatusOK {
			w.fail("%s says that it is ready, a query gets %d", name, code)
		}
	}
	w.life.s.plane.Inspect(func(e *engine.Engine) {
		if err := e.Check(); err != nil {
			w.fail("%v", err)
		}
	})
}
