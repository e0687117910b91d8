package worlds

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// worldsToTry is 50, or what SLUICE_WORLDS says: 1000 is for the night.
func worldsToTry(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLUICE_WORLDS")
	if text == "" {
		return 50
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_WORLDS is %q, want a number", text)
	}
	return n
}

// slow are planners that take seconds for a world. They run in one of slowEvery worlds.
var slow = []string{"ramsis", "tidal", "modelswitching"}

const slowEvery = 25

// testSpan is how long queries arrive in these tests, in seconds.
const testSpan = 8

// No run of any system in any world is above its bound.
func TestNoRunIsAboveItsBound(t *testing.T) {
	s := highstest.Solver(t)
	var mu sync.Mutex
	ran := 0
	err := experiment.Sweep(context.Background(), worldsToTry(t), runtime.NumCPU(), nil,
		func(ctx context.Context, n int) error {
			p, refused, err := open(101, n)
			if err != nil || refused != "" {
				return err
			}
			p.Workload.DurationS = testSpan
			most, err := p.limit(ctx, s)
			if err != nil {
				return err
			}
			for _, system := range quickened() {
				if slices.Contains(slow, system.Planner) && n%slowEvery != 0 {
					continue
				}
				x, err := p.run(ctx, system, s, nil)
				if err != nil {
					return err
				}
				above, text, err := p.above(ctx, s, x, most)
				if err != nil {
					return err
				}
				mu.Lock()
				if x.refused == "" {
					ran++
				}
				if above {
					t.Errorf("%s in world %s (%s): %s", system.Name, p.Name, p.TraitList(), text)
				}
				mu.Unlock()
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs", ran)
}

// The default system refuses no feasible world.
func TestTheDefaultRefusesNothing(t *testing.T) {
	s := highstest.Solver(t)
	first, err := systems.Get("sluice")
	if err != nil {
		t.Fatal(err)
	}
	for k := range worldsToTry(t) {
		p, why, err := open(102, k)
		if err != nil {
			t.Fatal(err)
		}
		if why == "" {
			p.Workload.DurationS = 1
			x, err := p.run(context.Background(), first, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			why = x.refused
		}
		if why != "" {
			t.Errorf("world %s (%s) is refused: %s", p.Name, p.TraitList(), why)
		}
	}
}

// A few worlds and systems, twice: the same rows, notes and charts.
func TestWorldsTwice(t *testing.T) {
	s := highstest.Solver(t)
	var list []systems.System
	for _, name := range []string{"sluice", "proteus", "infaas-accuracy", "scrooge", "infless-balanced"} {
		x, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	o := figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) {
		r := newRunner(reproduce.Request{Parallel: parallel, Solver: s, Seeds: 1}, []int{10, 13, 27}, list)
		return r.runFigures(context.Background())
	})
	figures := make(map[string]int)
	for _, r := range o.Rows {
		figures[r.Figure]++
	}
	if figures["U"] < 3*(3+5) || figures["M"] == 0 || figures["T"] == 0 || len(o.Charts) != 2 {
		t.Errorf("rows by figure: %v; %d charts", figures, len(o.Charts))
	}
}
