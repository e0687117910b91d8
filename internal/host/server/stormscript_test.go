package server

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
)

// stormDeed is what happens in an event of a storm.
type stormDeed int

const (
	queriesCome stormDeed = iota
	modelLoads
	modelReplaced // by another file, then loaded
	modelBroken   // by a file that is no model, then loaded
	modelUnloads
	functionDeployed
	functionDeleted
	workerFails
	serverStops // and starts again
	serverKilled
	diskFills
	connectionsEnd
	sequenceComes
	peopleLook
)

var stormDeeds = [...]string{"queries", "load", "replace", "break", "unload", "deploy", "delete", "fault", "restart",
	"kill", "full disk", "connections", "sequence", "looks"}

// stormEvent is one of a script. What its numbers mean depends on the deed.
type stormEvent struct {
	at   time.Duration
	deed stormDeed
	who  int // number of a model, function or worker
	n    int // queries, the number that a model adds, the fault, or what the clock or the disk does
	long time.Duration
}

func (e stormEvent) String() string {
	return fmt.Sprintf("%8v %s %d: %d, %v", e.at, stormDeeds[e.deed], e.who, e.n, e.long)
}

// stormScript is a system and what happens to it.
type stormScript struct {
	seed    uint64
	system  string
	serves  bool // the system's planner is the default's, which leaves no app without a machine
	fixed   bool // workers keep their app, so that a new one may find none
	back    bool // at the end it starts once more, on a machine whose clock was set back to the beginning
	journal bool
	events  []stormEvent
}

func (s *stormScript) String() string {
	lines := []string{fmt.Sprintf("seed %d, system %s", s.seed, s.system)}
	for _, e := range s.events {
		lines = append(lines, e.String())
	}
	return strings.Join(lines, "\n")
}

// stormNames is the number of models, and of functions. Beside them are an ensemble and a model with a state.
const (
	stormNames = 2
	ensemble   = stormNames
	stateful   = stormNames + 1
)

// newStorm makes the script of a seed.
func newStorm(seed uint64, names []string) *stormScript {
	rng := rand.New(rand.NewPCG(seed, 40))
	s := &stormScript{seed: seed, system: "sluice"}
	if rng.IntN(2) == 0 {
		s.system = names[rng.IntN(len(names))]
	}
	own, err := systems.Get("sluice")
	must(err)
	x, err := systems.Get(s.system)
	must(err)
	s.serves, s.fixed = x.Planner == own.Planner, x.Options.Planning.Place == "fixed"
	// How often each deed is done. Restarts cost most time.
	bag := []stormDeed{
		modelLoads, modelLoads, modelLoads, modelReplaced, modelReplaced, modelBroken, modelUnloads,
		functionDeployed, functionDeployed, functionDeployed, functionDeleted, workerFails, workerFails, workerFails,
	}
	add := func(d stormDeed) {
		e := stormEvent{at: time.Duration(rng.IntN(20_000)) * time.Millisecond, deed: d, who: rng.IntN(stormNames),
			n: 1 + rng.IntN(30), long: time.Duration(1+rng.IntN(4000)) * time.Millisecond}
		switch d {
		case workerFails:
			e.n = 1 + rng.IntN(int(stormFaults)-1)
		case diskFills:
			e.long *= 3
		}
		s.events = append(s.events, e)
	}
	for range 6 + rng.IntN(10) {
		add(bag[rng.IntN(len(bag))])
	}
	for range 5 + rng.IntN(15) {
		add(queriesCome)
	}
	for range rng.IntN(2) {
		add(serverStops)
	}
	for range rng.IntN(2) {
		add(serverKilled)
	}
	rng = rand.New(rand.NewPCG(seed, 41)) // the events above are those that a seed had before there were these
	for range rng.IntN(2) {
		add(diskFills)
	}
	for range rng.IntN(3) {
		add(connectionsEnd)
	}
	if rng.IntN(2) == 0 { // something to serve, from the beginning
		for who := range stormNames {
			s.events = append(s.events, stormEvent{deed: modelLoads, who: who},
				stormEvent{deed: functionDeployed, who: who, n: 31 - who})
		}
		s.events = append(s.events, stormEvent{deed: modelLoads, who: ensemble},
			stormEvent{deed: modelLoads, who: stateful})
	}
	few := len(s.events)
	for range rng.IntN(5) {
		add([...]stormDeed{modelLoads, modelReplaced, modelBroken, modelUnloads}[rng.IntN(4)])
	}
	for range rng.IntN(4) {
		add(queriesCome)
	}
	for k := range s.events[few:] {
		s.events[few+k].who = ensemble
	}
	few = len(s.events)
	for range rng.IntN(3) {
		add([...]stormDeed{modelLoads, modelUnloads}[rng.IntN(2)])
	}
	for range rng.IntN(8) {
		add(sequenceComes)
	}
	for k := range s.events[few:] {
		s.events[few+k].who = stateful
	}
	for range rng.IntN(3) {
		add(peopleLook)
	}
	s.back, s.journal = rng.IntN(4) == 0, rng.IntN(2) == 0
	slices.SortStableFunc(s.events, func(a, b stormEvent) int { return cmp.Compare(a.at, b.at) })
	return s
}
