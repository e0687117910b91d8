// Package systems names compositions: which planner, router, batcher and scaler make up a system. It holds the one list
// of parts and the one list of systems; no other package branches on a name of either.
package systems

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
)

// routerPart and batcherPart make a fresh rule: rules keep state, so that every engine needs its own.
type routerPart struct {
	name, doc string
	make      func(Options) route.Router
}

type batcherPart struct {
	name, doc string
	make      func(Options) batch.Rule
}

var routers = []routerPart{
	{"roundrobin", "each query to the next instance in turn", func(Options) route.Router {
		return route.NewRoundRobin()
	}},
	{"weighted", "each instance its planned share, to within one query", func(Options) route.Router {
		return route.NewWeighted()
	}},
	{"random", "each query to an instance drawn by its planned share", func(Options) route.Router {
		return route.NewRandom(rand.New(rand.NewPCG(1, 1)))
	}},
	{"shortestqueue", "each query to the instance with the fewest queries", func(Options) route.Router {
		return route.NewShortestQueue()
	}},
	{"fcfs", "one central queue, the first query to a free instance of the preferred type",
		func(o Options) route.Router {
			return &route.FCFS{Idle: o.Routing.Idle}
		}},
	{"eager", "one central queue, an idle instance takes a batch as the policy in force has it",
		func(Options) route.Router {
			return route.Eager{}
		}},
	{"tidal", "one central queue, batches for idle instances by what they bring and what they leave the pool worth",
		func(Options) route.Router {
			return route.NewTidal()
		}},
	{"matching", "one central queue, queries paired with instances so that the worth of the time they take is least",
		func(o Options) route.Router {
			return route.NewMatching(o.Routing.Cells)
		}},
	{"schedule",
		"one central queue, queries scheduled ahead on all instances, the worth of the time they take being least, " +
			"and those left out that take most", func(Options) route.Router {
			return route.NewSchedule()
		}},
	{"threshold", "one central queue, large queries to the base type and small ones to the others",
		func(o Options) route.Router {
			return route.NewThreshold(o.Routing.Threshold)
		}},
	{"bands", "each query so that every instance's rate stays where its batches fill and do not wait for each other",
		func(Options) route.Router {
			return route.NewBands()
		}},
	{"earliestfinish", "each query to the instance on which it is believed to end first", func(Options) route.Router {
		return route.NewEarliestFinish()
	}},
}

var batchers = []batcherPart{
	{"adaptive", "waits until the batch must go for its first query to be in time", func(Options) batch.Rule {
		return batch.Adaptive{}
	}},
	{"aimd", "runs at once up to a size that grows while batches are in time", func(o Options) batch.Rule {
		return batch.AIMD{Release: o.Planning.Oddities}
	}},
	{"asrouted", "runs at once what the router has queued, on the variant it chose", func(Options) batch.Rule {
		return batch.AsRouted{}
	}},
	{"earlydrop", "runs at once the largest batch that is in time, gives up what no batch can save",
		func(Options) batch.Rule {
			return batch.EarlyDrop{}
		}},
	{"filltimeout", "waits until the batch is full or a time-out", func(o Options) batch.Rule {
		return batch.FillTimeout{Timeout: o.Timeout}
	}},
	{"fixed", "batches of one size", func(o Options) batch.Rule { return batch.Fixed{Size: o.BatchSize} }},
	{"greedy", "runs all that waits on the most accurate variant that is in time", func(Options) batch.Rule {
		return batch.Greedy{}
	}},
	{"mostaccurate", "runs at once, on the most accurate variant that lets all that waits be in time",
		func(Options) batch.Rule {
			return batch.MostAccurate{}
		}},
	{"policytable", "runs what a table made in advance says for the queue's length and slack",
		func(Options) batch.Rule {
			return batch.PolicyTable{}
		}},
	{"single", "one query at a time", func(Options) batch.Rule { return batch.Single{} }},
}

// Routers returns the names of all routing rules.
func Routers() []string { return names(routers, func(p routerPart) string { return p.name }) }

// Batchers returns the names of all batching rules.
func Batchers() []string { return names(batchers, func(p batcherPart) string { return p.name }) }

// NewRouter returns a fresh rule by name.
func NewRouter(name string, o Options) (route.Router, error) {
	at := slices.IndexFunc(routers, func(p routerPart) bool { return p.name == name })
	if at < 0 {
		return nil, fmt.Errorf("router %q does not exist: use one of %s", name, strings.Join(Routers(), ", "))
	}
	return routers[at].make(o), nil
}

// NewBatcher returns a fresh rule by name.
func NewBatcher(name string, o Options) (batch.Rule, error) {
	at := slices.IndexFunc(batchers, func(p batcherPart) bool { return p.name == name })
	if at < 0 {
		return nil, fmt.Errorf("batcher %q does not exist: use one of %s", name, strings.Join(Batchers(), ", "))
	}
	return batchers[at].make(o), nil
}

func names[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i := range list {
		out[i] = of(list[i])
	}
	return out
}

// Part is a rule by its name, with what it does in one sentence.
type Part struct{ Name, Doc string }

// RouterParts returns all routing rules.
func RouterParts() []Part {
	return names(routers, func(p routerPart) Part { return Part{p.name, p.doc} })
}

// BatcherParts returns all batching rules.
func BatcherParts() []Part {
	return names(batchers, func(p batcherPart) Part { return Part{p.name, p.doc} })
}
