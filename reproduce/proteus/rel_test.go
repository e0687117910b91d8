package proteus

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/solver/highs"
)

func TestRel(t *testing.T) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := world(s, releaseSetup)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := traces(w.Spec, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"proteus", "infaas-accuracy", "sommelier", "clipper-ht", "clipper-ha"} {
		t0 := time.Now()
		j, err := newRelease(w, name, ts[1])
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.run(context.Background(), 1)
		if err != nil {
			t.Error(err)
			continue
		}
		o := r.Report.Overall
		t.Logf("  %-20s acc %.4f drop %.4f viol %.4f thr %.1f plans %d  late %d dropped %d refused %d %v", name, r.accuracy, r.drop, r.violations, r.throughput, len(r.Plans), o.Late, o.Dropped, o.Refused, time.Since(t0))
	}
}
