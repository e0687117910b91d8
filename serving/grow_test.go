package serving_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
)

// Specs that grow at random are valid and grow out of each other, forwards only. Their open part is valid, holds
// nothing closed or retired, and translates identifiers both ways.
func TestGrownWorlds(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := simtest.Random(rng)
		before := c.Spec
		for k, g := range c.Grown(rng, 8) {
			if err := g.Spec.Validate(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := g.Spec.CheckGrowth(before); err != nil {
				t.Fatalf("seed %d, world %d: %v", seed, k, err)
			}
			if before.CheckGrowth(g.Spec) == nil {
				t.Fatalf("seed %d, world %d: the world before grows out of it, too", seed, k)
			}
			before = g.Spec
			o := g.Spec.Open()
			if err := o.Spec.Validate(); err != nil {
				t.Fatalf("seed %d: open: %v", seed, err)
			}
			open := 0
			for a := range g.Spec.Apps {
				if is := o.AppOf[a] != serving.None; is == g.Spec.Apps[a].Closed {
					t.Errorf("seed %d: app %d closed %v, open %v", seed, a, g.Spec.Apps[a].Closed, is)
				} else if is {
					open++
					if o.Apps[o.AppOf[a]] != serving.AppID(a) || o.Spec.Apps[o.AppOf[a]].Name != g.Spec.Apps[a].Name {
						t.Errorf("seed %d: app %d is numbered wrongly", seed, a)
					}
				}
			}
			if open != len(o.Spec.Apps) {
				t.Errorf("seed %d: %d apps open, %d listed", seed, open, len(o.Spec.Apps))
			}
			for v, x := range o.Spec.Variants {
				was := g.Spec.Variants[o.Variants[v]]
				if was.Name != x.Name || x.Retired || o.VariantOf[o.Variants[v]] != serving.VariantID(v) ||
					o.Stages[x.Stage] != was.Stage {
					t.Errorf("seed %d: variant %q is numbered wrongly", seed, x.Name)
				}
			}
		}
	}
}

func TestGrowsRefuses(t *testing.T) {
	base, a, _ := (&serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
	}).
		WithApp(serving.App{Name: "f"}, serving.Variant{Name: "f.1", MaxBatch: 1}, nil)
	closed := base.WithClosed(a)
	for want, s := range map[string]func() (*serving.Spec, *serving.Spec){
		"shrink":       func() (*serving.Spec, *serving.Spec) { return &serving.Spec{}, base },
		"stays closed": func() (*serving.Spec, *serving.Spec) { return base, closed },
		"machines":     func() (*serving.Spec, *serving.Spec) { c := *base; c.Workers = nil; return &c, base },
		"being retired": func() (*serving.Spec, *serving.Spec) {
			c := base.WithClosed(a)
			c.Variants[0].MaxBatch = 2
			return c, base
		},
		"added at the end": func() (*serving.Spec, *serving.Spec) {
			c := base.WithClosed(a)
			c.Stages[0].Variants = []serving.VariantID{1}
			return c, base
		},
	} {
		is, was := s()
		if err := is.CheckGrowth(was); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
