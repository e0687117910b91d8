package infless

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Figure 3(a) counts the instances of a platform that gives every request an instance of its own, with and without a
// buffer in front that makes batches of four (§2.2). Its ResNet-20 was not published; ours is MobileNet on two threads,
// the smallest network for images that was.
const (
	buffered  = 4
	figure3At = "mobilenet"
	// bufferWait is how long a buffer waits for a batch to fill; the paper does not say.
	bufferWait = 100 * ms
	// alive is how long a platform keeps an instance that has nothing to do.
	alive = 300 * time.Second
)

var figure3Size = instanceSize{threads: 2}

// mapped counts what a platform with one request for each instance has launched.
type mapped struct {
	queries, calls, launched int
	held                     time.Duration // by all instances, from their launch to their end
}

// oneToOne lets a platform serve calls of so many queries each, which a buffer collects for no longer than wait. A call
// goes to the instance that became free last, or to a new one, which starts first; a call that waits for a start keeps
// its instance.
func oneToOne(src workload.Source, batch int, wait, start time.Duration, takes func(n int) time.Duration) (out mapped) {
	type instance struct{ launched, free serving.Time }
	var busy, idle []instance // idle: the one that became free last is last
	settle := func(now serving.Time) {
		for k := 0; k < len(busy); {
			if busy[k].free > now {
				k++
				continue
			}
			idle = append(idle, busy[k])
			busy = append(busy[:k], busy[k+1:]...)
		}
		for len(idle) > 0 && idle[0].free.Add(alive) <= now {
			out.held += idle[0].free.Add(alive).Sub(idle[0].launched)
			idle = idle[1:]
		}
	}
	call := func(now serving.Time, n int) {
		settle(now)
		out.calls++
		x := instance{launched: now, free: now.Add(start)}
		if last := len(idle) - 1; last >= 0 {
			x, idle = idle[last], idle[:last]
			x.free = now
		} else {
			out.launched++
		}
		x.free = x.free.Add(takes(n))
		busy = append(busy, x)
	}
	held, first := 0, serving.Time(0)
	for {
		q, more := src.Next()
		if held > 0 && (!more || q.At >= first.Add(wait)) {
			call(first.Add(wait), held)
			held = 0
		}
		if !more {
			break
		}
		if held == 0 {
			first = q.At
		}
		out.queries++
		if held++; held == batch {
			call(q.At, held)
			held = 0
		}
	}
	settle(math.MaxInt64 / 2)
	return out
}

// figure3 counts calls, instances and their time with and without batches in front of the platform.
func figure3(run *runner, f *reproduce.Sheet) error {
	all, err := readLatencies()
	if err != nil {
		return err
	}
	table := all[figure3At][figure3Size]
	takes := func(n int) time.Duration {
		for table[n] == 0 { // the next size that was measured
			n++
		}
		return table[n]
	}
	for _, name := range traceNames {
		load, err := relativeLoad(name, run.steps)
		if err != nil {
			return err
		}
		source, err := arrivalsAlong(load, []float64{applications[0].peak}, stepSpan)
		if err != nil {
			return err
		}
		counted := func(batch int) reproduce.Runs[mapped] {
			return reproduce.Add(run.Runner, fmt.Sprint("3 ", name, " ", batch), 1, run.Seeds,
				func(_ context.Context, seed uint64) (mapped, error) {
					return oneToOne(source(seed), batch, bufferWait,
						startTime(figure3At), takes), nil
				})
		}
		at, one, four := f.At("trace", name), counted(1), counted(buffered)
		for _, q := range []struct {
			what, unit string
			of         func(mapped) float64
			published  float64
		}{
			{"calls", "", func(m mapped) float64 { return float64(m.calls) }, 72},
			{"instances launched", "", func(m mapped) float64 { return float64(m.launched) }, 35},
			{"time of instances", "s", func(m mapped) float64 { return m.held.Seconds() }, 100 * (1 - 96303./117555)},
		} {
			at.Row("one request for each instance", q.what, q.unit, one.Each(q.of))
			at.Row("batches of four", q.what, q.unit, four.Each(q.of))
			fewer := four.Each(q.of).With(one.Each(q.of), func(b, a float64) float64 { return 100 * (1 - b/a) })
			at.Row("batches of four", q.what+" fewer", "%", fewer).
				Published(q.published, "§2.2, another model and trace")
		}
	}
	f.Note(fmt.Sprintf("Figure 3(a): %s on two threads along a trace of up to %v queries/s; idle instances stay for "+
		"%v, and a buffer waits %v for a batch to fill.", figure3At, applications[0].peak, alive, bufferWait))
	return nil
}
