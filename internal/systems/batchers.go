package systems

import "github.com/sluice-serving/sluice/policy/batch"

var batchers = []registered[func(Options) batch.Rule]{
	{
		"adaptive", "waits for one more query as long as the first one can still be in time", "Proteus §5",
		func(Options) batch.Rule { return batch.Adaptive{} },
	},
	{
		"aimd", "runs at once, up to a size that grows by one after a batch in time and shrinks by a tenth after a " +
			"late one", "Clipper, NSDI 2017, §4.3.1",
		func(o Options) batch.Rule { return batch.AIMD{Release: o.Release} },
	},
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
		"policytable", "runs what a policy made in advance says for the queue's length and the time left",
		"RAMSIS §3.2.2",
		func(Options) batch.Rule { return batch.PolicyTable{} },
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
