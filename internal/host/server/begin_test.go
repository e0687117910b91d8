package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// begun opens a configuration as a server does, and returns what was said.
func begunWith(t *testing.T, path string, o host.Options) (*host.Profiled, string) {
	t.Helper()
	var said []string
	o.Notice = func(text string) { said = append(said, text) }
	opened, err := host.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := opened.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.Join(said, "\n")
}

// refineAll does what a server would do while it is idle.
func refineAll(t *testing.T, s *Server) {
	t.Helper()
	for do := s.refinement(); do != nil; do = s.refinement() {
		do(t.Context())
	}
}

// A server measures while it is idle what it began with a look at: what was measured is believed, and kept for the next
// start, also of another configuration with the same models.
func TestMeasuredWhileIdle(t *testing.T) {
	names := []string{"good", "product", "divisor", "large", "missing"}
	path, measured := hosttest.OddRepository(t, names...), t.TempDir()
	o := host.Options{Quick: true, Measured: measured}
	p, _ := begunWith(t, path, o)
	if n := len(p.Unmeasured()); n != 4 {
		t.Fatalf("%d models are to be measured, want 4", n)
	}
	s := served(t, p, Options{})
	refineAll(t, s)
	var g *functions.Extension
	err := s.refiner.manager.Extend(t.Context(), func(x *functions.Extension) error { g = x; return nil })
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[serving.VariantID]int)
	for _, x := range g.Measured.Latency {
		count[x.Variant] = max(count[x.Variant], x.Samples)
	}
	for v := range g.Spec.Variants {
		if name := g.Spec.Variants[v].Name[1:]; (count[serving.VariantID(v)] == 0) != (name == "large") {
			t.Errorf("%q was measured with %d samples", name, count[serving.VariantID(v)])
		}
	}
	for _, again := range []string{path, hosttest.OddRepository(t, append(names[1:], names[0])...)} {
		p, said := begunWith(t, again, o)
		rest := p.Unmeasured()
		if len(rest) != 1 || rest[0].Variant[1:] != "large" || len(p.Single()) != 2 {
			t.Errorf("a later start is to measure %v, one at a time run %v:\n%s", rest, p.Single(), said)
		}
	}
	if kept, err := os.ReadDir(measured); err != nil || len(kept) != 3 {
		t.Errorf("%d models are kept, %v", len(kept), err)
	}
}

// A profile that is known from other runs altogether lies beside the configuration, too.
func TestKnownProfilesAreKept(t *testing.T) {
	o := host.Options{Quick: true, Measured: t.TempDir()}
	p, _ := begunWith(t, hosttest.OddRepository(t, "good"), o)
	refineAll(t, served(t, p, Options{}))
	path := hosttest.OddRepository(t, "good")
	p, said := begunWith(t, path, o)
	f, err := profiler.ReadFile(filepath.Join(filepath.Dir(path), machines.MeasuredProfile))
	if len(p.Unmeasured()) > 0 || err != nil || !f.Has("0good", "local") {
		t.Errorf("%v are to be measured, %v:\n%s", p.Unmeasured(), err, said)
	}
}

// believedOf returns what a server believes of a variant: the samples that it rests on, and what one item takes.
func believedOf(t *testing.T, s *Server, name string) (samples int, one time.Duration) {
	t.Helper()
	err := s.refiner.manager.Extend(t.Context(), func(x *functions.Extension) error {
		for _, p := range x.Measured.Latency {
			if x.Spec.Variants[p.Variant].Name == name && p.Items == 1 {
				samples, one = samples+p.Samples, p.Mean
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return samples, one
}

// What nobody measured is not refused: its queries are answered. What they take is believed after a few, and the first
// that is answered is what the model is measured with.
func TestUnmeasuredIsServedAndLearned(t *testing.T) {
	path := hosttest.OddRepository(t, "good", "large")
	p, _ := begunWith(t, path, host.Options{Quick: true})
	s := served(t, p, Options{})
	const body = `{"inputs":[{"name":"x","datatype":"INT64","shape":[1],"data":[%d]}]}`
	send := func(x, want int) {
		code, got := ask(t, "POST", s.HTTPAddr()+"/v2/models/1large/infer", fmt.Sprintf(body, x))
		if code != want || want == 200 && !strings.Contains(got, `"data":[1000]`) {
			t.Errorf("%d: %d %s, want %d", x, code, got, want)
		}
	}
	send(1, 500)
	if n, one := believedOf(t, s, "1large"); n != 0 || one != host.AssumedLatency {
		t.Errorf("%d samples, %v are believed of what never ran", n, one)
	}
	for range firstRuns {
		send(5000, 200)
	}
	err := waitFor(t.Context(), func() bool { n, _ := believedOf(t, s, "1large"); return n == firstRuns })
	if _, one := believedOf(t, s, "1large"); err != nil || one == host.AssumedLatency {
		t.Errorf("%v are believed after %d queries, %v", one, firstRuns, err)
	}
	refineAll(t, s)
	if n, _ := believedOf(t, s, "1large"); n <= firstRuns {
		t.Errorf("%d samples: it is not measured with what its clients send", n)
	}
	if p, said := begunWith(t, path, host.Options{Quick: true}); len(p.Unmeasured()) > 0 {
		t.Errorf("%v are to be measured at the next start:\n%s", p.Unmeasured(), said)
	}
}
