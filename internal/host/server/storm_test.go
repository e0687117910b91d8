package server

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/systems"
)

// stormRows are seeds that found a fault once.
var stormRows = []struct {
	seed  uint64
	found string
}{
	{55, "a runtime that panicked while a model was measured broke off the change instead of failing it"},
	{1623, "planners of papers made no plan while a model of one app could not be loaded"},
	{2301, "the same"},
	{5740, "a scaler asked for one plan after another in the first instant of a clock"},
}

const stormHere = "SLUICE_STORM_HERE" // is set in the process that storms run in

// The whole server under a storm, on a virtual clock: requests of the protocol come in and are called off, models are
// loaded, replaced, broken and unloaded, functions deployed and deleted, workers fail, hang and are slow, and the
// server is stopped or killed and starts again with what its disk held, all as a seed says. SLUICE_STORM names one
// seed, or a range of them such as 1-1000. See [storm] for what must hold.
//
// A kill is a copy of the folder at a moment when nothing moves, so that nothing is torn in the middle of a write:
// internal/host/store has tests of damage. Connections end, disks fill, and clocks jump between lives. Outside are
// sockets, workers that are not in this process, models in Python, and machines that come and go. A seed fixes the
// script; goroutines that are ready at the same instant may still run in another order.
//
// It runs in a process of its own, since a full disk is one of all of a process's files.
func TestStorm(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	if os.Getenv(stormHere) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStorm$", "-test.v",
			"-test.timeout="+flag.Lookup("test.timeout").Value.String(), fmt.Sprintf("-test.short=%v", testing.Short()))
		c.Env = append(os.Environ(), stormHere+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v", out, err)
		} else {
			t.Logf("%s", out)
		}
		return
	}
	names := stormSystems(t)
	from, to := uint64(1), uint64(longtest.Of(200, 10_000))
	if testing.Short() {
		to = 20
	}
	first, last, named, err := longtest.Seeds("SLUICE_STORM")
	if err != nil {
		t.Fatal(err)
	}
	if named {
		from, to = first, last
	} else {
		for _, x := range stormRows {
			weather(t, newStorm(x.seed, names))
		}
	}
	var total stormCounts
	for seed := from; seed <= to; seed++ {
		total.add(weather(t, newStorm(seed, names)))
	}
	n := int(to - from + 1)
	t.Logf("%d storms: %+v", n, total)
	if n > 9 && (total.Served == 0 || total.Served == total.Queries || total.Changes == 0 || total.Starts == n) {
		t.Error("nothing went well, or nothing went wrong")
	}
}

// weather runs a script. Where it fails, that is said with the smallest script that still does.
func weather(t *testing.T, s *stormScript) stormCounts {
	t.Helper()
	run := func(s *stormScript) (counts stormCounts, failed string) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		must(err)
		defer func() { must(os.RemoveAll(root)) }()
		var w *storm
		synctest.Test(t, func(*testing.T) { w = ride(filepath.Join(root, "0"), s) })
		if s.back && len(w.failed) == 0 && w.counts.Starts > 0 {
			synctest.Test(t, func(*testing.T) { w.again() })
		}
		return w.counts, strings.Join(w.failed, "\n")
	}
	counts, failed := run(s)
	if failed == "" {
		return counts
	}
	least := *s
	least.events = longtest.Shrink(s.events, func(events []stormEvent) bool {
		less := *s
		less.events = events
		_, failed := run(&less)
		return failed != ""
	}, 40)
	t.Errorf("%s\nafter\n%s\nwhich fails as well as all %d events; to repeat:\n"+
		"SLUICE_STORM=%d go test ./internal/host/server -run '^TestStorm$'", failed, &least, len(s.events), s.seed)
	return counts
}

// stormSystems are the systems whose models may come and go, by name. Solving decision processes takes too long.
func stormSystems(t *testing.T) (out []string) {
	for _, name := range systems.Names() {
		x, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if x.Planner != "static" {
			out = append(out, name)
		}
	}
	return out
}
