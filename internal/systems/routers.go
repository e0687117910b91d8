package systems

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/policy/priced"
	"github.com/sluice-serving/sluice/policy/route"
)

var routers = []registered[func(Options) route.Router]{
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
	{
		"eager", "keeps one queue, from which an idle instance takes the batch that the policy in force says",
		"RAMSIS §7",
		func(Options) route.Router { return route.Eager{} },
	},
	{
		"tidal", "keeps one queue and weighs each batch's accuracy against the state in which it leaves the pool",
		"ours",
		func(Options) route.Router { return route.NewTidal() },
	},
	{
		"matching", "keeps one queue and pairs queries with instances at the least machine time, weighted by its worth",
		"Kairos §5.1, §6",
		func(o Options) route.Router { return route.NewMatching(o.Routing.Cells) },
	},
	{
		"schedule", "keeps one queue and schedules queries ahead on all instances at the least machine time, " +
			"weighted by its worth; where not all can be in time, it leaves out those that take most",
		"ours",
		func(Options) route.Router { return route.NewSchedule() },
	},
	{
		"threshold", "keeps one queue and gives large queries to the base device type and small ones to the others",
		"DeepRecSys, ISCA 2020; Kairos §7 (DRS)",
		func(o Options) route.Router { return route.NewThreshold(o.Routing.Threshold) },
	},
	{
		"bands", "keeps every instance's rate where its batches fill and do not wait for each other", "INFless §3.2",
		func(Options) route.Router { return route.NewBands() },
	},
	{
		"priced", "keeps one queue for each stage, and on every machine runs the batch of any stage that brings most " +
			"beyond the worth of the machine's time", "ours",
		func(o Options) route.Router {
			return priced.New(priced.Options{NoPrices: o.Routing.Free, NoWaiting: o.Routing.Eager})
		},
	},
	{
		"earliestfinish", "gives each query to the instance on which it is believed to end first",
		"Kairos §7 (CLKWRK)",
		func(Options) route.Router { return route.NewEarliestFinish() },
	},
	{
		"slackfit", "keeps one queue, from which a free instance takes the slowest of the kept batches that is in " +
			"time for its first query", "SuperServe, NSDI 2025",
		func(Options) route.Router { return route.NewSlackFit() },
	},
	{
		"deferred", "keeps one queue for each stage, waits with a batch until one more query would make it late, and " +
			"gives it to the free machine of the lowest number", "Symphony, arXiv 2308.07470",
		func(Options) route.Router { return route.NewDeferred() },
	},
	{
		"mostaccuratefirst", "fills the most accurate instances up to what they carry, then the next, and sends " +
			"late queries to faster ones with capacity left", "Loki, HPDC 2024",
		func(Options) route.Router { return route.NewMostAccurateFirst() },
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
