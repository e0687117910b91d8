package systems

import (
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/internal/policy/priced"
	"github.com/sluice-serving/sluice/policy/route"
)

var routers = slices.Concat(plainRouters, ramsisRouters, tidalRouters, kairosRouters, inflessRouters, timedRouters,
	superServeRouters, symphonyRouters, lokiRouters, pardRouters, cascadeRouters)

// plainRouters do not look at time.
var plainRouters = routerTable{
	{
		"roundrobin", "gives each query to the next instance in turn", "RAMSIS §4.1",
		func(Options) route.Router { return route.NewRoundRobin() },
	},
	{
		"weighted", "gives each instance its planned share of the queries, to within one query", "Proteus §4",
		func(Options) route.Router { return route.NewWeighted() },
	},
	{
		"random", "draws an instance for each query, by the planned shares", "Proteus, the authors' code",
		func(Options) route.Router { return route.NewRandom(rand.New(rand.NewPCG(1, 1))) },
	},
	{
		"shortestqueue", "gives each query to the instance with the fewest queries", "RAMSIS App. I",
		func(Options) route.Router { return route.NewShortestQueue() },
	},
	{
		"fcfs", "keeps one queue and gives the first query to a free instance, on the preferred device type first",
		"Kairos §3, §7 (Ribbon)",
		func(o Options) route.Router { return &route.FCFS{Idle: o.Routing.Idle} },
	},
}

// timedRouters compare how long batches are believed to take.
var timedRouters = routerTable{
	{
		"priced", "keeps one queue for each stage, and on every machine runs the batch of any stage that brings most " +
			"beyond the worth of the machine's time", "ours",
		func(o Options) route.Router {
			return priced.New(priced.Options{
				NoPrices: o.Routing.Free, NoWaiting: o.Routing.Eager, NoSeconds: o.Routing.Final,
			})
		},
	},
	{
		"earliestfinish", "gives each query to the instance on which it is believed to end first",
		"Kairos §7 (CLKWRK)",
		func(Options) route.Router { return route.NewEarliestFinish() },
	},
}

// Routers returns the names of all routing rules.
func Routers() []string { return namesOf(routers) }

// NewRouter returns a fresh rule by name.
func NewRouter(name string, o Options) (route.Router, error) {
	fresh, err := find(Router, routers, name)
	if err != nil {
		return nil, err
	}
	return fresh(o), nil
}
