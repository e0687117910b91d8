package steps

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Batch is a batch that runs or has ended. Of one that runs only what says how it ended changes. Names are those of
// when it started: places in the spec's tables may be used again.
type Batch struct {
	ID       serving.BatchID
	Instance serving.InstanceID
	Worker   serving.WorkerID     // serving.None for an instance that was never launched
	Device   serving.DeviceTypeID // of the part of the worker that the instance has
	Stage    serving.StageID
	Variant  serving.VariantID
	Items    int32
	Tasks    []engine.Task // not to be changed
	Why      engine.Reason
	Started  serving.Time
	Expected time.Duration
	Plain    time.Duration // Expected without the ballooning factor of the plan in force

	stageName, variantName string   // the former is "" for an app of one stage
	weighed                *Weighed // nil where the rule compared nothing

	Ended  serving.Time // serving.Never while it runs
	Done   bool         // it reported its end; its instance was not lost
	Result engine.Result
	Took   time.Duration
}

// Due is when the batch ends, as believed when it started.
func (b *Batch) Due() serving.Time { return b.Started.Add(b.Expected) }

// start keeps a batch that starts, and has its queries know it.
func (l *Log) start(now serving.Time, d *engine.Decision) *Batch {
	b := &l.batches.take(1)[0]
	stage := &l.spec.Stages[d.Stage]
	*b = Batch{
		ID: d.Batch, Instance: d.Instance, Worker: serving.None, Device: serving.None, Stage: d.Stage,
		Variant: d.Variant, Items: d.Items, Tasks: l.tasks.take(len(d.Tasks)), Why: d.Reason, Started: now,
		Expected: d.Expected, Plain: d.Expected, variantName: l.spec.Variants[d.Variant].Name,
		weighed: l.weighed[d.Instance], Ended: serving.Never,
	}
	copy(b.Tasks, d.Tasks)
	if int(d.Stage) < len(l.ballooning) {
		b.Plain = time.Duration(float64(d.Expected) / l.ballooning[d.Stage])
	}
	if at, ok := l.places[d.Instance]; ok {
		b.Worker, b.Device = at.worker, at.device
	}
	if len(l.spec.Apps[stage.App].Stages) > 1 {
		b.stageName = stage.Name
	}
	l.running[d.Batch] = b
	for k := range b.Tasks {
		q := l.find(b.Tasks[k].Query)
		if q == nil {
			continue
		}
		if n := len(q.parts); n == 0 || q.parts[n-1].Batch != b {
			q.parts = append(q.parts, part{Batch: b, task: &b.Tasks[k]})
		}
		q.parts[len(q.parts)-1].items += b.Tasks[k].Items
	}
	return b
}

// done takes the end that a batch reports. It returns nil for one that is not known.
func (l *Log) done(now serving.Time, in *engine.Input) *Batch {
	b := l.running[in.Batch]
	if b != nil {
		b.Done, b.Result, b.Took = true, in.Result, in.Took
		l.close(now, b)
	}
	return b
}

// close keeps a batch among those that have ended.
func (l *Log) close(now serving.Time, b *Batch) {
	delete(l.running, b.ID)
	if b.Ended = now; b.Worker != serving.None {
		l.ended[l.n%len(l.ended)] = b
		l.n++
	}
}

// Ended calls see for every batch that has ended and is kept, latest end first, until it returns false. The log must be
// locked.
func (l *Log) Ended(see func(*Batch) bool) {
	for k := l.n - 1; k >= max(0, l.n-len(l.ended)); k-- {
		if !see(l.ended[k%len(l.ended)]) {
			return
		}
	}
}

// Batch returns a batch that runs or has ended and is kept; nil for another. The log must be locked.
func (l *Log) Batch(id serving.BatchID) *Batch {
	found := l.running[id]
	if found == nil {
		l.Ended(func(b *Batch) bool {
			if b.ID == id {
				found = b
			}
			return found == nil
		})
	}
	return found
}
