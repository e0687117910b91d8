package ramsis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// foresightBound returns an upper bound of the mean accuracy, in per cent, of every scheduler that makes no query late,
// even of one that knows all arrivals in advance. It is NaN when some query must be late. arrivals ascend, in seconds.
//
// A batch runs between the last arrival and the first deadline of its queries. So each query's share of a worker's time
// lies between its own arrival and deadline, and no interval of time holds more than the workers have. The relaxation
// ignores that this time comes in whole batches: a query may use any mixture of the batches that nearby arrivals make
// possible.
//
// This is a concave program over the seconds that each query gets, with a constraint for every interval. It decomposes
// at the most violated constraint, as speed scaling does (Yao, Demers and Shenker 1995).
func foresightBound(arrivals []float64, list []model, slo time.Duration, workers int) float64 {
	n := len(arrivals)
	if n == 0 {
		return math.NaN()
	}
	f := &foresightSearch{
		workers: float64(workers), curves: curves(arrivals, list, slo), from: slices.Clone(arrivals),
		to: make([]float64, n), gets: make([]float64, n),
	}
	for i := range f.to {
		f.to[i] = arrivals[i] + slo.Seconds()
	}
	if slices.ContainsFunc(f.curves, func(c curve) bool { return len(c) == 0 }) {
		return math.NaN()
	}
	total := 0.0
	open := [][2]int{{0, n}}
	for len(open) > 0 {
		low, high := open[len(open)-1][0], open[len(open)-1][1]
		open = open[:len(open)-1]
		if low == high {
			continue
		}
		if !f.allot(low, high) {
			return math.NaN()
		}
		first, last := f.tightest(low, high)
		if first < 0 || first == low && last == high-1 {
			for i := low; i < high; i++ {
				total += f.curves[i].at(f.gets[i])
			}
			continue
		}
		// These queries need all the time between their first arrival and last deadline, so the others keep out of it.
		for i := low; i < first; i++ {
			f.to[i] = min(f.to[i], f.from[first])
		}
		for i := last + 1; i < high; i++ {
			f.from[i] = max(f.from[i], f.to[last])
		}
		open = append(open, [2]int{low, first}, [2]int{first, last + 1}, [2]int{last + 1, high})
	}
	return total / float64(n)
}

// curve is the accuracy of a query over the seconds of a worker that it gets: the corners of a rising concave function.
type curve []corner

type corner struct{ seconds, accuracy float64 }

func (c curve) at(seconds float64) float64 {
	out := c[0].accuracy
	for k := 1; k < len(c); k++ {
		if seconds <= c[k-1].seconds {
			break
		}
		part := min((seconds-c[k-1].seconds)/(c[k].seconds-c[k-1].seconds), 1)
		out = c[k-1].accuracy + part*(c[k].accuracy-c[k-1].accuracy)
	}
	return out
}

// curves returns the curve of every query, from the batches that it can be in.
func curves(arrivals []float64, list []model, slo time.Duration) []curve {
	type batch struct {
		size int
		took time.Duration
		corner
	}
	var batches []batch
	for _, m := range list {
		for b, took := range m.took {
			if took <= slo {
				batches = append(batches, batch{b + 1, took, corner{took.Seconds() / float64(b+1), m.accuracy}})
			}
		}
	}
	n := len(arrivals)
	// for each query a bit set of batches
	words := (len(batches) + 63) / 64
	sets := make([]uint64, n*words)
	for k, b := range batches {
		span := (slo - b.took).Seconds()
		marked := 0 // queries before it are done
		for s := 0; s+b.size <= n; s++ {
			if arrivals[s+b.size-1]-arrivals[s] > span {
				continue
			}
			for i := max(s, marked); i < s+b.size; i++ {
				sets[i*words+k/64] |= 1 << (k % 64)
			}
			marked = s + b.size
		}
	}
	known := make(map[string]curve)
	out := make([]curve, n)
	for i := range out {
		set := sets[i*words : (i+1)*words]
		key := fmt.Sprint(set)
		c, ok := known[key]
		if !ok {
			var points []corner
			for k, b := range batches {
				if set[k/64]>>(k%64)&1 == 1 {
					points = append(points, b.corner)
				}
			}
			c = hull(points)
			known[key] = c
		}
		out[i] = c
	}
	return out
}

// hull returns the upper concave hull of points, up to its maximum. It sorts points.
func hull(points []corner) curve {
	slices.SortFunc(points, func(a, b corner) int {
		return cmp.Or(cmp.Compare(a.seconds, b.seconds), cmp.Compare(b.accuracy, a.accuracy))
	})
	var out curve
	for _, p := range points {
		if len(out) > 0 && p.accuracy <= out[len(out)-1].accuracy {
			continue
		}
		for len(out) >= 2 {
			a, b := out[len(out)-2], out[len(out)-1]
			if (b.accuracy-a.accuracy)*(p.seconds-a.seconds) > (p.accuracy-a.accuracy)*(b.seconds-a.seconds) {
				break
			}
			out = out[:len(out)-1]
		}
		out = append(out, p)
	}
	return out
}

// foresightSearch is the state of the decomposition.
type foresightSearch struct {
	workers  float64
	curves   []curve
	from, to []float64 // bounds of each query's time, in seconds
	gets     []float64 // seconds of a worker, by query
}

// allot divides the time from the first arrival to the last deadline among the queries low to high-1, as if no other
// constraint bound them. Every query takes time as long as a second raises its accuracy by more than a price. Bisection
// raises the price until the time suffices. It returns false when the time is too short for the fastest batches.
func (f *foresightSearch) allot(low, high int) bool {
	budget := f.workers * (f.to[high-1] - f.from[low])
	take := func(price float64, also bool) (sum float64) {
		for i := low; i < high; i++ {
			c, k := f.curves[i], 0
			for k+1 < len(c) {
				slope := (c[k+1].accuracy - c[k].accuracy) / (c[k+1].seconds - c[k].seconds)
				if slope < price || slope == price && !also {
					break
				}
				k++
			}
			f.gets[i] = c[k].seconds
			sum += c[k].seconds
		}
		return sum
	}
	if take(0, false) <= budget {
		return true
	}
	lowPrice, highPrice := 0.0, 1.0
	for take(highPrice, false) > budget {
		if highPrice > 1e9 {
			return false
		}
		lowPrice, highPrice = highPrice, 2*highPrice
	}
	for range 60 {
		if m := (lowPrice + highPrice) / 2; take(m, false) > budget {
			lowPrice = m
		} else {
			highPrice = m
		}
	}
	// Queries that are indifferent at this price share the rest of the time.
	most := take(lowPrice, true)
	upper := slices.Clone(f.gets[low:high])
	least := take(highPrice, false)
	part := 0.0
	if most > least {
		part = min(max((budget-least)/(most-least), 0), 1)
	}
	for i := range upper {
		f.gets[low+i] += part * (upper[i] - f.gets[low+i])
	}
	return true
}

// tightest returns the first and last query of the interval whose allotted time most exceeds that of the workers; -1
// when no interval exceeds it.
func (f *foresightSearch) tightest(low, high int) (first, last int) {
	most, start := 1e-6*f.workers, math.Inf(-1)
	first, last = -1, -1
	before, at := 0.0, low
	for i := low; i < high; i++ {
		if x := f.workers*f.from[i] - before; x > start {
			start, at = x, i
		}
		before += f.gets[i]
		if x := before - f.workers*f.to[i] + start; x > most {
			most, first, last = x, at, i
		}
	}
	return first, last
}

// foresightTask adds a task that computes the bound of a load's arrivals, with every seed.
func (run *runner) foresightTask(at setup, on *load) reproduce.Runs[float64] {
	key := fmt.Sprintf("bound by foresight of %s, %v", on.name, at)
	weight := int(on.expected()) / 4
	return reproduce.Add(run.Runner, key, weight, run.Seeds, func(_ context.Context, seed uint64) (float64, error) {
		list, err := at.models()
		if err != nil {
			return 0, err
		}
		var arrivals []float64
		source := on.source(seed)
		for {
			a, ok := source.Next()
			if !ok || a.At.Seconds() >= on.span.Seconds() {
				break
			}
			arrivals = append(arrivals, a.At.Seconds())
		}
		return foresightBound(arrivals, list, at.slo, at.workers), nil
	})
}
