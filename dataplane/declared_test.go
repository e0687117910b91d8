package dataplane_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/limits"
)

// A query may say at which rate its stream will send. That holds until the stream ends, says otherwise, or has been
// silent for long.
func TestRatesDeclaredByQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := remembering(t, counter, dataplane.Config{})
		defer p.Close()
		declared := func(want float64) {
			t.Helper()
			synctest.Wait()
			got := -1.0
			p.Inspect(func(e *engine.Engine) { got = e.Declared(0) })
			if got != want {
				t.Errorf("after %v %v queries/s are declared, want %v", time.Duration(p.Now()), got, want)
			}
		}
		say := func(stream string, rate float64, ends bool) {
			t.Helper()
			r := of(stream)
			r.Rate, r.Ends = rate, ends
			if _, err := p.Infer(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		say("a", 0, false)
		declared(0)
		say("a", 20, false)
		say("b", 5, false)
		declared(25)
		say("a", 10, false)
		declared(15)
		say("b", 0, true)
		declared(10)
		for range 4 { // a stream that goes on stays, without saying so again
			time.Sleep(20 * time.Second)
			say("a", 0, false)
		}
		declared(10)
		if err := p.OpenStream(0, "c", 7); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		declared(7) // a was silent; c was not opened by a query, and is closed by who opened it
		p.CloseStream(0, "c")
		declared(0)
	})
}

// What the streams of an app declare together is bounded, and so is what those of a tenant declare. A stream that ends
// makes room for another one, and queries are served all the same.
func TestDeclarationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plane(t, &runtime{run: echo}, time.Second, dataplane.Config{})
		defer p.Close()
		declared := func(want float64) {
			t.Helper()
			synctest.Wait()
			got := -1.0
			p.Inspect(func(e *engine.Engine) { got = e.Declared(0) })
			if math.Abs(got-want) > 1e-6 {
				t.Errorf("%v queries/s are declared, want %v", got, want)
			}
		}
		say := func(stream string, tenant int32, rate, most float64, ends bool) {
			t.Helper()
			r := one()
			r.Stream, r.Tenant, r.Rate, r.Declares, r.Ends = stream, tenant, rate, most, ends
			if _, err := p.Infer(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		say("a", 1, 30, 50, false)
		say("b", 1, 30, 50, false)
		declared(50) // tenant 1 may send no more
		say("c", 2, 30, 0, false)
		declared(80)
		say("a", 1, 0, 50, true)
		declared(50)
		say("b", 1, 30, 50, false)
		declared(60) // there is room now
		for k := range 5000 {
			say(fmt.Sprint("flood ", k), 0, limits.SequenceRate, 0, false)
		}
		declared(limits.Announced)
		if err := p.OpenStream(0, "d", 7); err == nil || !strings.Contains(err.Error(), "declares 7") {
			t.Errorf("a stream beyond the bound: %v", err)
		}
		time.Sleep(2 * time.Minute) // all of them were silent
		declared(0)
		say("e", 1, limits.SequenceRate, 0, false)
		declared(limits.SequenceRate)
	})
}
