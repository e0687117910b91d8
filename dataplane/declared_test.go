package dataplane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
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
