package systems

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/policy/batch"
)

// batchers are in the order of their names.
var batchers = slices.SortedFunc(slices.Values(slices.Concat(generalBatchers, proteusBatchers, ramsisBatchers)),
	func(a, b registered[func(Options) batch.Rule]) int { return cmp.Compare(a.name, b.name) })

var generalBatchers = batcherTable{
	{
		"asrouted", "runs at once what the router has queued, on the variant that the router chose", "ours",
		func(Options) batch.Rule { return batch.AsRouted{} },
	},
	{
		"earlydrop", "runs at once the largest batch that is in time, and drops queries that no batch can save",
		"Nexus, SOSP 2019, §4.3",
		func(Options) batch.Rule { return batch.EarlyDrop{} },
	},
	{
		"filltimeout", "waits until the batch is full or a time-out has passed", "INFless §3.2",
		func(o Options) batch.Rule { return batch.FillTimeout{Timeout: o.Timeout} },
	},
	{
		"fixed", "runs batches of one size", "Scrooge §3.3",
		func(o Options) batch.Rule { return batch.Fixed{Size: o.BatchSize} },
	},
	{
		"greedy", "runs all that waits on the most accurate variant that is in time", "RAMSIS §2.2",
		func(Options) batch.Rule { return batch.Greedy{} },
	},
	{
		"mostaccurate", "runs at once, on the most accurate variant with which all that waits is in time", "ours",
		func(Options) batch.Rule { return batch.MostAccurate{} },
	},
	{
		"single", "runs one query at a time", "Kairos §4",
		func(Options) batch.Rule { return batch.Single{} },
	},
}

// Batchers returns the names of all batching rules.
func Batchers() []string { return namesOf(batchers) }

// NewBatcher returns a fresh rule by name.
func NewBatcher(name string, o Options) (batch.Rule, error) {
	fresh, err := find(Batcher, batchers, name)
	if err != nil {
		return nil, err
	}
	return fresh(o), nil
}
