package worlds

import (
	"context"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/internal/sim/bounds"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// worldsToTry is 10, in the long form 50, or what SLUICE_WORLDS says: 1000 is for the night.
func worldsToTry(t *testing.T) int { return fromEnvironment(t, "SLUICE_WORLDS", longtest.Of(10, 50)) }

// fromEnvironment is the natural number that a variable of the environment holds; otherwise where it is not set.
func fromEnvironment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, want a natural number", name, text)
	}
	return n
}

// slow are planners that take seconds for a world. They run in one of SLUICE_SLOW_EVERY worlds, by default 10.
var slow = []string{"ramsis", "tidal", "modelswitching"}

// searching are planners that take tenths of a second for a world. Each of their systems but the default one runs in
// one of SLUICE_SEARCHING_EVERY worlds, by default 5, and not all in the same.
var searching = []string{"proteus", "loki", "scrooge", "ipa", "fluid"}

// runsIn tells whether a system, by its place in the list, runs in a world.
func runsIn(system *systems.System, place, world, slowEvery, searchEvery int) bool {
	switch {
	case slices.Contains(slow, system.Planner):
		return world%slowEvery == 0
	case system.Name != systems.Default && slices.Contains(searching, system.Planner):
		return (world+place)%searchEvery == 0
	}
	return true
}

// testSpan is how long queries arrive in these tests, in seconds.
const testSpan = 8

// tally counts what became of runs. It may be used concurrently.
type tally struct {
	mu      sync.Mutex
	worlds  int
	ran     map[string]int            // by system
	refused map[string]map[string]int // by system and reason
	ratio   float64                   // highest utility of a run, by the bound of its world
	where   string                    // the run that has it
}

func newTally() *tally {
	return &tally{ran: make(map[string]int), refused: make(map[string]map[string]int)}
}

func (c *tally) add(system string, p *place, x *result, most *limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.refused != "" {
		if c.refused[system] == nil {
			c.refused[system] = make(map[string]int)
		}
		c.refused[system][numbers.ReplaceAllString(x.refused, "N")]++
		return
	}
	c.ran[system]++
	if most.utility > 0 && x.utility/most.utility > c.ratio {
		c.ratio, c.where = x.utility/most.utility, system+" in world "+p.Name
	}
}

// numbers are what differs between reasons that are the same.
var numbers = regexp.MustCompile(`[0-9][0-9.,e+-]*|"[^"]*"`)

func (c *tally) log(t *testing.T) {
	t.Helper()
	runs, refusals := 0, 0
	for _, system := range quickened() {
		runs += c.ran[system.Name]
		for _, reason := range slices.Sorted(maps.Keys(c.refused[system.Name])) {
			refusals += c.refused[system.Name][reason]
			t.Logf("%s: %d runs; refuses %d worlds: %s", system.Name, c.ran[system.Name],
				c.refused[system.Name][reason], reason)
		}
	}
	t.Logf("%d worlds, %d runs, %d refusals; most of the world's bound: %.5f, %s", c.worlds, runs, refusals, c.ratio,
		c.where)
}

// No run of any system in any world is above its bound. SLUICE_FIRST_WORLD is the number of the first one.
func TestNoRunIsAboveItsBound(t *testing.T) {
	s := highstest.Solver(t)
	from := fromEnvironment(t, "SLUICE_FIRST_WORLD", 0)
	slowEvery := max(1, fromEnvironment(t, "SLUICE_SLOW_EVERY", longtest.Of(10, 25)))
	searchEvery := max(1, fromEnvironment(t, "SLUICE_SEARCHING_EVERY", longtest.Of(5, 1)))
	counts := newTally()
	defer counts.log(t)
	counts.worlds = worldsToTry(t)
	err := experiment.Sweep(context.Background(), counts.worlds, runtime.NumCPU(), nil,
		func(ctx context.Context, k int) error {
			n := from + k
			p, refused, err := open(101, n)
			if err != nil {
				return err
			}
			if refused != "" {
				for _, system := range quickened() {
					counts.add(system.Name, p, &result{refused: "the world: " + refused}, nil)
				}
				return nil
			}
			p.Workload.DurationS = testSpan
			most, err := p.limit(ctx, s)
			if err != nil {
				return err
			}
			for place, system := range quickened() {
				if !runsIn(&system, place, n, slowEvery, searchEvery) {
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
				counts.add(system.Name, p, x, most)
				if above {
					t.Errorf("%s in world %s (%s): %s", system.Name, p.Name, p.TraitList(), text)
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range quickened() {
		if counts.worlds >= max(slowEvery, searchEvery) &&
			counts.ran[system.Name]+len(counts.refused[system.Name]) == 0 {
			t.Errorf("%s has run in no world", system.Name)
		}
	}
}

// Nor is any above the bound by foresight, which is tighter: the default system and two that batch otherwise are tried.
func TestNoRunIsAboveTheBoundByForesight(t *testing.T) {
	s := highstest.Solver(t)
	from := fromEnvironment(t, "SLUICE_FIRST_WORLD", 0)
	var most float64
	for k := range max(1, worldsToTry(t)/foresightEvery) {
		p, refused, err := open(103, from+k)
		if err != nil || refused != "" {
			t.Fatal(err, refused)
		}
		p.Workload.DurationS = testSpan
		var known *bound.Result
		for _, name := range []string{systems.Default, "superserve", "nexus-batching"} {
			system, err := systems.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			x, err := p.run(t.Context(), system, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			own := known
			if own == nil || x.speed != nil {
				if own, err = p.bound(t.Context(), s, x.speed, bounds.Foresight()); err != nil {
					t.Fatal(err)
				}
			}
			known = own
			l := &limit{utility: own.Utility}
			if exceeds(x, l) {
				t.Errorf("%s in world %s (%s): utility %.4f of at most %.4f", name, p.Name, p.TraitList(), x.utility,
					own.Utility)
			}
			most = max(most, share(x, l))
		}
	}
	t.Logf("most of a bound: %.4f", most)
}

// foresightEvery is how many times as many worlds are tried with the fluid bound.
const foresightEvery = 25

// A world whose machines cannot have 99 % of each app's queries in time has a bound on utility and none on money.
func TestWorldsThatNoMoneyServesInTime(t *testing.T) {
	p, refused, err := open(103, 10)
	if err != nil || refused != "" {
		t.Fatal(refused, err)
	}
	p.Workload.DurationS = testSpan
	most, err := p.limit(context.Background(), highstest.Solver(t))
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(most.cost) || !(most.utility > 0.9 && most.utility < 1) {
		t.Errorf("utility at most %v, for %v $/h at least", most.utility, most.cost)
	}
}

// A graph is served whose objective holds from end to end, though an equal part of it is shorter than one of its stages
// takes (app4: 19.5 ms of 56 for its second stage, a third is 18.7).
func TestUnequalStagesAreServed(t *testing.T) {
	for _, name := range []string{"fcfs", "triton-like", "superserve", "symphony"} {
		system, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		p, refused, err := open(101, 885)
		if err != nil || refused != "" {
			t.Fatal(refused, err)
		}
		p.Workload.DurationS = testSpan
		x, err := p.run(context.Background(), system, highstest.Solver(t), nil)
		if err != nil || x.refused != "" || x.utility < 0.3 {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

// The default system refuses no feasible world.
func TestTheDefaultRefusesNothing(t *testing.T) {
	s := highstest.Solver(t)
	first, err := systems.Get("sluice")
	if err != nil {
		t.Fatal(err)
	}
	from := fromEnvironment(t, "SLUICE_FIRST_WORLD", 0)
	err = experiment.Sweep(context.Background(), worldsToTry(t), runtime.NumCPU(), nil,
		func(ctx context.Context, k int) error {
			p, why, err := open(102, from+k)
			if err != nil {
				return err
			}
			if why == "" {
				p.Workload.DurationS = 1
				x, err := p.run(ctx, first, s, nil)
				if err != nil {
					return err
				}
				why = x.refused
			}
			if why != "" {
				t.Errorf("world %s (%s) is refused: %s", p.Name, p.TraitList(), why)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// A few worlds and systems, twice: the same rows and notes.
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
	worlds := longtest.Of([]int{13}, []int{10, 13, 27})
	o := figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) {
		r := newRunner(reproduce.Request{Parallel: parallel, Solver: s, Seeds: 1}, worlds, list)
		return study.Run(t.Context(), r)
	})
	figures := make(map[string]int)
	for _, r := range o.Rows {
		figures[r.Figure]++
	}
	if figures["U"] < len(worlds)*(3+5) || figures["M"] == 0 || figures["T"] == 0 {
		t.Errorf("rows by figure: %v", figures)
	}
}
