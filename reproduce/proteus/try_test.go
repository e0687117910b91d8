package proteus

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/solver/highs"
)

func TestTry(t *testing.T) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := world(s, setup{})
	if err != nil {
		t.Fatal(err)
	}
	ts, err := traces(w.Spec, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range ts {
		t.Log(tr.name, tr.total(), tr.seconds(), sum(tr.mean()), sum(tr.peak(10)))
		for _, name := range []string{"proteus", "infaas-accuracy", "sommelier", "clipper-ht", "clipper-ha", "proteus-batching"} {
			if name == "proteus-batching" {
				continue
			}
			t0 := time.Now()
			j := newJob(w, system(name), tr)
			r, err := j.run(context.Background(), 1)
			if err != nil {
				t.Error(err)
				continue
			}
			t.Logf("  %-20s acc %.4f drop %.4f viol %.4f thr %.1f plans %d  %v", name, r.accuracy, r.drop, r.violations, r.throughput, len(r.Plans), time.Since(t0))
		}
	}
}
