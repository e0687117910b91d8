package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/serving"
)

// learns is how many calls LSTH is to have seen before it knows when the next comes: five idle times between calls are
// the fewest that a histogram says something with.
const learns = 6

// An app that is called every 90 seconds is let go after each call and started before the next, once LSTH has seen the
// calls come: no call waits for a start from then on. In the simulator, since histograms of idle times count in
// minutes.
func TestInflessPrewarms(t *testing.T) {
	p := newPacked(t, "keep: lsth")
	recorded := filepath.Join(p.dir, "run.journal")
	var calls strings.Builder
	for n := range 19 {
		fmt.Fprintln(&calls, 90_000*(n+1))
	}
	trace := write(t, p.dir, "calls.txt", "%s", calls.String())
	if status, out, errs := run(t.Context(), "simulate", "-f", p.file, "--request-distribution", "trace", "--trace",
		trace, "--duration", "30m", "--journal", recorded); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if n := prewarmed(t, recorded); n != 13 {
		t.Errorf("%d calls after the first %d, want 13", n, learns)
	}
}

// The same over real models on the real clock, which takes eight minutes: with SLUICE_PREWARM set only.
func TestInflessPrewarmsLive(t *testing.T) {
	if os.Getenv("SLUICE_PREWARM") == "" {
		t.Skip("takes eight minutes; set SLUICE_PREWARM to run it")
	}
	p := newPacked(t, "keep: lsth")
	recorded := filepath.Join(p.dir, "run.journal")
	server := sluice(t, "serve", "-f", p.file, "--journal", recorded)
	until(t, func() bool { return get(p.base+"/v2/health/ready") == 200 })
	for n := range learns + 2 {
		time.Sleep(65 * time.Second)
		if status, text := p.call(t.Context()); status != 200 {
			t.Errorf("call %d: %d %s", n+1, status, text)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if n := prewarmed(t, recorded); n != 2 {
		t.Errorf("%d calls after the first %d, want 2", n, learns)
	}
	if status, out, errs := run(t.Context(), "replay", recorded); status != 0 {
		t.Errorf("replay: %d %s%s", status, out, errs)
	}
}

var (
	begins = regexp.MustCompile(`^launch-instance i\d+ `)
	starts = regexp.MustCompile(`^start-batch b\d+ on i\d+ `)
	stops  = regexp.MustCompile(`^stop-instance i\d+ `)
)

// prewarmed reads a journal of calls that come one at a time, and returns how many came after LSTH had learned. Before
// each of them the instances of the call before have to be gone and another has to be there, and it has to run at once.
func prewarmed(t *testing.T, path string) (calls int) {
	t.Helper()
	seen, live, gone, cold := 0, 0, false, 0
	var launched, arrived serving.Time
	steps(t, path, func(s *journal.Step) {
		for _, in := range s.In {
			if in.Kind != engine.QueryArrived {
				continue
			}
			seen++
			arrived = s.At
			if live == 0 {
				cold++
			}
			if seen <= learns {
				continue
			}
			calls++
			if !gone || live == 0 {
				t.Errorf("call %d at %v: the app was let go before: %v, %d instances are there", seen,
					time.Duration(s.At), gone, live)
			}
			t.Logf("call %d at %v finds an instance that was started %v before", seen, time.Duration(s.At),
				s.At.Sub(launched))
		}
		for _, text := range s.Out {
			switch {
			case begins.MatchString(text):
				live++
				launched = s.At
			case stops.MatchString(text):
				if live--; live == 0 {
					gone = true
				}
			case starts.MatchString(text):
				if gone = false; seen > learns && s.At.Sub(arrived) > 250*time.Millisecond {
					t.Errorf("call %d waited for %v", seen, s.At.Sub(arrived))
				}
			case strings.HasPrefix(text, "end-query") && !strings.Contains(text, " served "):
				t.Errorf("call %d: %s", seen, text)
			}
		}
	})
	t.Logf("%d calls, of which %d of the first %d found nothing ready", seen, cold, learns)
	return calls
}
