package infless

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
	planner "github.com/sluice-serving/sluice/policy/plan/infless"
	"github.com/sluice-serving/sluice/solver/highs"
	"github.com/sluice-serving/sluice/systems"
)

func TestExplorePacking(t *testing.T) {
	solver, err := highs.New(highs.Options{})
	if err != nil { t.Fatal(err) }
	for name, fs := range map[string][]function{"osvt": osvt, "qa": qa} {
		w, err := newWorld(fs, servers)
		if err != nil { t.Fatal(err) }
		w.Solver = solver
		for _, sys := range []string{"infless", "infless-release", "infless-balanced", "x-balanced", "infless-without-batching", "infless-without-scheduling", "infless-op1.5", "infless-op2", "openfaas+", "batch", "batch+rs"} {
			s, err := systems.Get(sys)
			if err != nil { s, _ = systems.Get("infless"); s.Options.Packing = map[string]systems.Packing{"x-balanced": {Balanced: true}}[sys] }
			p, err := s.NewPlanner(w.Known())
			if err != nil { t.Fatal(err) }
			rates := func(total float64) []float64 {
				out := make([]float64, len(fs))
				for i := range out { out[i] = total / float64(len(fs)) }
				return out
			}
			ok := func(total float64) bool {
				pl, err := p.Plan(context.Background(), plan.Request{Spec: w.Spec, Rates: rates(total)})
				return err == nil && pl.Shed == nil
			}
			lo, hi := 0.0, 1.0
			for ok(hi) { lo, hi = hi, hi*2 }
			for hi-lo > 1 { m := (lo + hi) / 2; if ok(m) { lo = m } else { hi = m } }
			pl, _ := p.Plan(context.Background(), plan.Request{Spec: w.Spec, Rates: rates(lo)})
			bound := 0.0
			if x, okk := p.(*planner.Planner); okk {
				bound, err = x.Carries(context.Background(), solver, plan.Request{Spec: w.Spec, Rates: rates(1)})
				if err != nil { fmt.Println(err) }
			}
			n := 0
			counts := map[string]int{}
			if pl != nil { n = len(pl.Instances); for _, i := range pl.Instances { counts[fmt.Sprint(i.Stage, " b", i.Variants[0].Limit, " ", w.Spec.DeviceTypes[i.Part-1].Name)]++ } }
			fmt.Println(name, sys, lo, "bound", bound, n, counts)
		}
	}
}
