package dataplane

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// StageTime says how an answered query was served at one stage. Where its items ran in several batches, all fields but
// Items are of the batch that ended last.
type StageTime struct {
	Stage, Variant string
	Items          int           // of the query
	Length         int           // of the longest of them, as the stage counts it; 0 where it is not known
	Batch          int           // items of the batch
	Ready          time.Duration // from the query's acceptance until the stage's input was complete
	Queue          time.Duration // from then to the start of the batch
	Run            time.Duration // of the batch
}

// timings lists the stages that served an answered query, in the order of the app's stages.
func timings(spec *serving.Spec, d *engine.Decision, arrived, now serving.Time) []StageTime {
	if len(d.Stages) == 0 {
		return []StageTime{{
			Stage: spec.Stages[spec.Source(d.App)].Name, Variant: spec.Variants[d.Variant].Name, Items: int(d.Brought),
			Batch: int(d.Items),
			Queue: d.Queue, Run: now.Sub(arrived) - d.Queue,
		}}
	}
	out := make([]StageTime, len(d.Stages))
	for k, x := range d.Stages {
		out[k] = StageTime{
			Stage: spec.Stages[x.Stage].Name, Variant: spec.Variants[x.Variant].Name, Items: int(x.Items),
			Length: int(x.Length), Batch: int(x.Batch),
			Ready: x.Ready.Sub(arrived), Queue: x.Started.Sub(x.Ready), Run: x.Done.Sub(x.Started),
		}
	}
	return out
}
