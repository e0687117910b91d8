package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// bounded is a fleet of ready instances with the given bounds of their rates.
func bounded(limit int, bounds ...[2]float64) *fleet.Fleet {
	f := ruletest.Pool(make([]float64, len(bounds)), limit)
	for k, i := range f.Ready(0) {
		f.SetTerms(i, fleet.Terms{Slots: 1, Low: bounds[k][0], Up: bounds[k][1]})
		f.Refresh(i)
	}
	return f
}

// divided returns the rates at which instances with the given bounds get queries.
func divided(rate float64, bounds ...[2]float64) []float64 {
	var s bandStage
	s.build(bounded(8, bounds...).Ready(0), 1)
	s.setRates(rate)
	out := make([]float64, len(s.bands))
	for k := range s.bands {
		out[k] = s.Share[k] * rate
	}
	return out
}

// The example of INFless §3.2 has an instance of 28 to 80 queries/s; beside it one of half of that.
func TestBandsByHand(t *testing.T) {
	one, half := [2]float64{28, 80}, [2]float64{14, 40}
	for _, c := range []struct {
		what string
		rate float64
		want []float64
	}{
		{"above the band, both at their most", 150, []float64{100, 50}},
		{"at its top", 120, []float64{80, 40}},
		{"within, in proportion to the width: 80 - 30/78 x 52", 90, []float64{60, 30}},
		{"at its bottom, 0.8 x 42 + 0.2 x 120", 57.6, []float64{57.6 * 2 / 3, 57.6 / 3}},
		{"below, the larger carries it alone", 57, []float64{57, 0}},
		{"below, too little for the larger", 20, []float64{0, 20}},
		{"below, too little for either", 5, []float64{0, 5}},
	} {
		for k, got := range divided(c.rate, one, half) {
			if math.Abs(got-c.want[k]) > 1e-9 {
				t.Errorf("%s: %v queries/s to instance %d, want %v", c.what, got, k, c.want[k])
			}
		}
	}
	for _, got := range divided(30, [2]float64{}, [2]float64{}) {
		if got != 15 {
			t.Errorf("no bounds were planned: %v of 30", got)
		}
	}
}

// Against the paper's rule, for random bounds and rates: all queries are sent. In the band each instance has the rate
// of the formula, within its bounds. Below it the fewest possible instances get queries, within their bounds where the
// rate allows any.
func TestBandsAgainstTheRule(t *testing.T) {
	below := 0
	for seed := uint64(1); seed <= 2000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		bounds := make([][2]float64, 1+rng.IntN(8))
		low, up := 0.0, 0.0
		for k := range bounds {
			u := 1 + 100*rng.Float64()
			bounds[k] = [2]float64{u * rng.Float64(), u}
			low, up = low+bounds[k][0], up+u
		}
		rate := 1.2 * up * rng.Float64()
		got := divided(rate, bounds...)
		sum := 0.0
		for k, r := range got {
			sum += r
			switch {
			case rate > up:
				if want := rate * bounds[k][1] / up; math.Abs(r-want) > 1e-9*up {
					t.Fatalf("seed %d: %v of %v to %v, want %v", seed, r, rate, bounds[k], want)
				}
			case rate >= 0.8*low+0.2*up:
				want := bounds[k][1] - (up-rate)/(up-low)*(bounds[k][1]-bounds[k][0])
				if math.Abs(r-want) > 1e-9*up || r > bounds[k][1]+1e-9 || r < bounds[k][0]-1e-9 {
					t.Fatalf("seed %d: %v of %v to %v, want %v", seed, r, rate, bounds[k], want)
				}
			}
		}
		if math.Abs(sum-rate) > 1e-9*up {
			t.Fatalf("seed %d: %v of %v are sent", seed, sum, rate)
		}
		if rate >= 0.8*low+0.2*up {
			continue
		}
		below++
		most, least := 0.0, math.Inf(1)
		chosenUp, chosenLow, used := 0.0, 0.0, 0
		for k, r := range got {
			if r > 0 {
				used++
				chosenLow, chosenUp = chosenLow+bounds[k][0], chosenUp+bounds[k][1]
				most, least = max(most, r-bounds[k][1]), min(least, r-bounds[k][0])
			}
		}
		if most > 1e-9 || chosenUp < rate-1e-9 {
			t.Fatalf("seed %d: %v of %v exceed what instances carry", seed, got, bounds)
		}
		if chosenLow <= rate && least < -1e-9 {
			t.Fatalf("seed %d: %v to %v of which some need more", seed, got, bounds)
		}
	}
	if below < 200 {
		t.Errorf("only %d of 2000 rates lay below their band", below)
	}
}

// After n queries every instance has received what its rates add up to: to within less than one while they do not
// change (as in route.Weighted), and to within two where the rate changes all the time.
func TestBandsSpacing(t *testing.T) {
	worst := 0.0
	for seed := uint64(1); seed <= 100; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		bounds := make([][2]float64, 2+rng.IntN(20))
		up := 0.0
		for k := range bounds {
			u := 1 + 100*rng.Float64()
			bounds[k] = [2]float64{u * rng.Float64() / 2, u}
			up += u
		}
		steady := seed%2 == 0
		var s bandStage
		f := bounded(1<<20, bounds...)
		all := f.Ready(0)
		s.build(all, 1)
		s.setRates(up * (0.7 + 0.3*rng.Float64()))
		due := make([]float64, len(bounds))
		for range 3000 {
			if !steady && rng.IntN(20) == 0 {
				s.setRates(up * (0.7 + 0.3*rng.Float64()))
			}
			at := s.Next()
			for k := range due {
				due[k] += s.Share[k]
			}
			s.Take(at)
			due[at]--
			for k := range due {
				d := math.Abs(due[k])
				if steady && d >= 1 || d >= 2 {
					t.Fatalf("seed %d: instance %d is off by %v queries", seed, k, due[k])
				}
				if !steady {
					worst = max(worst, d)
				}
			}
		}
	}
	t.Logf("off by at most %.2f queries while the rate changes", worst)
}

// A full batch that has not started gets no more (INFless Figure 6a): queries go to instances without a rate, and wait
// centrally when nothing has room. Instances that come or go count at once.
func TestBandsDoNotOverfill(t *testing.T) {
	f := bounded(4, [2]float64{28, 80}, [2]float64{28, 80}, [2]float64{28, 80})
	m := monitor.NewRates(1)
	for k := range 30 {
		m.Add(serving.Time(k)*3e7, 0) // 30/s: one instance is enough
	}
	o := NewBands()
	v := ruletest.ViewWith(f, 9e8, nil, m)
	ruletest.Arrive(f, 1, 3)
	o.Route(v)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{3, 0, 0}) {
		t.Errorf("3 queries at 30/s: %v", got)
	}
	ruletest.Arrive(f, 4, 17)
	o.Route(v)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{4, 4, 4}) || f.Central(0).Len() != 8 {
		t.Errorf("20 queries: %v, and %d wait centrally", got, f.Central(0).Len())
	}
	f.Start(f.Ready(0)[1], 1, 0, 4, 9e8, time.Millisecond)
	o.Route(v)
	if got := ruletest.Lengths(f); !slices.Equal(got, []int{4, 4, 4}) || f.Central(0).Len() != 4 {
		t.Errorf("one batch started: %v, and %d wait centrally", got, f.Central(0).Len())
	}
	i := f.Launch(fleet.Placement{
		Terms: fleet.Terms{Slots: 1, Low: 1, Up: 2}, Variants: []fleet.Loaded{{Limit: 2, Wanted: true}},
	}, 0)
	o.Route(v)
	if f.Central(0).Len() != 4 {
		t.Error("an instance that launches was given queries")
	}
	f.Warm(i, 0)
	f.Drain(f.Ready(0)[0])
	f.Start(f.Instance(1), 2, 0, 4, 9e8, time.Millisecond)
	o.Route(v)
	got := ruletest.Lengths(f)
	if !slices.Equal(got, []int{4, 4, 2}) || f.Central(0).Len() != 2 || f.Instance(1).Queue().Len() != 0 {
		t.Errorf("one drains, one has come: %v, and %d wait centrally", got, f.Central(0).Len())
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}

// A query does not wait behind a batch after which it would end too late. It goes to a free instance or waits for one,
// unless its app serves late queries.
func TestBandsDoNotQueueBehindALateBatch(t *testing.T) {
	for _, late := range []serving.LatePolicy{serving.DropLate, serving.ServeLate} {
		f := bounded(1, [2]float64{1, 5}, [2]float64{1, 5}) // a query takes 2 ms
		f.Spec().Apps[0].Late = late
		v := ruletest.ViewAt(f, 1e9-5e6)
		o := NewBands()
		ruletest.Arrive(f, 1, 2)
		o.Route(v)
		for k, i := range f.Ready(0) {
			f.Start(i, serving.BatchID(k+1), 0, 1, v.Now, time.Duration(2+2*k)*time.Millisecond)
		}
		ruletest.Arrive(f, 3, 3) // until 1e9: one after the first batch, none after the second
		o.Route(v)
		got, want := ruletest.Lengths(f), []int{1, 0}
		if late == serving.ServeLate {
			want = []int{1, 1}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v wait behind batches that take 2 and 4 ms with 5 left, want %v", late, got, want)
		}
		f.Finish(f.Ready(0)[1], 2, v.Now+1)
		o.Route(v)
		if got := ruletest.Lengths(f)[1]; got != 1 {
			t.Errorf("%v: %d at the instance that has become free", late, got)
		}
	}
}

func BenchmarkBands(b *testing.B) {
	for _, n := range []int{4, 64, 256} {
		b.Run(fmt.Sprint(n, " instances"), func(b *testing.B) {
			bounds := make([][2]float64, n)
			for k := range bounds {
				bounds[k] = [2]float64{28, 80}
			}
			f := bounded(1<<30, bounds...)
			m := monitor.NewRates(1)
			o, v := NewBands(), ruletest.ViewWith(f, 1e9, nil, m)
			now, n := serving.Time(0), 0
			b.ReportAllocs()
			for b.Loop() {
				now += 1e6
				m.Add(now, 0)
				n++
				ruletest.Arrive(f, n, 1)
				v.Begin(now, 0, nil)
				o.Route(v)
				for _, i := range v.Touched() {
					r := i.Queue().Head()
					f.Dequeue(r)
					f.Release(r)
				}
			}
		})
	}
}
