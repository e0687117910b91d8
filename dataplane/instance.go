package dataplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// instance is a runtime from its launch to its release. One goroutine loads and unloads variants, and one for each slot
// runs batches.
type instance struct {
	id     serving.InstanceID
	worker serving.WorkerID
	jobs   chan *job
	ops    *operations
	ctx    context.Context // of its batches and loads; ends when the instance is stopped or lost
	cancel context.CancelFunc
}

// operation is the load or unload of a variant.
type operation struct {
	load    bool // else unload
	variant serving.VariantID
	limit   int // of a load: items
}

// operations is an unbounded queue, so that the owner goroutine never waits for an instance.
type operations struct {
	mu   sync.Mutex
	list []operation
	more chan struct{}
}

// job is a batch that an instance is to run, or runs.
type job struct {
	batch    Batch
	instance *instance
	io       *stageIO // nil at the stateless stage of an app of one
	// confidence says how to tell how sure the variant is; nil where that is not known
	confidence *serving.Confidence
	started    serving.Time
	took       time.Duration
	ended      serving.Time
	limit      time.Duration // of its run; see Config.RunTimeout
	err        error
}

func (p *Plane) launch(d *engine.Decision) {
	l := d.Launch
	ctx, cancel := context.WithCancel(p.ctx)
	i := &instance{
		id: d.Instance, worker: l.Key.Worker, jobs: make(chan *job, l.Slots),
		ops: &operations{more: make(chan struct{}, 1)},
		ctx: ctx, cancel: cancel,
	}
	p.instances[d.Instance] = i
	cores := l.Cores
	if cores == 0 {
		cores = p.spec().DeviceTypes[l.DeviceType].Cores // it shares the worker: a run may use all of it
	}
	spec := InstanceSpec{
		ID: d.Instance, Worker: l.Key.Worker, DeviceType: l.DeviceType, Variants: l.Variants[:1],
		BatchLimit: l.BatchLimit, Slots: l.Slots, Cores: cores, Accelerator: int(l.Accelerator),
		Percent: p.spec().DeviceTypes[l.DeviceType].Percent,
	}
	p.helpers.Add(1)
	go func() {
		defer p.helpers.Done()
		p.runInstance(ctx, i, spec, l.Variants[1:])
	}()
}

// runInstance launches an instance, loads and unloads variants as the engine decides, and releases it in the end.
func (p *Plane) runInstance(ctx context.Context, i *instance, spec InstanceSpec, more []serving.VariantID) {
	defer i.cancel()
	report := func(in engine.Input) { p.send(message{in: in}) }
	timed, done := context.WithTimeout(ctx, p.c.LaunchTimeout)
	runner, err := p.c.Backend(spec.Worker).Launch(timed, spec)
	done()
	if err != nil {
		if ctx.Err() == nil {
			in := engine.NewLoadFailed(i.id, spec.Variants[0])
			if errors.Is(err, ErrInstanceLost) || errors.Is(err, context.DeadlineExceeded) {
				in = engine.NewInstanceLost(i.id) // the fault is the worker's, not the model's
			} else {
				err = &LoadError{p.spec().Variants[spec.Variants[0]].Name, err}
			}
			p.c.Trouble(fmt.Errorf("launch of instance %d on worker %q: %w", i.id, p.spec().Workers[spec.Worker].Name,
				err))
			report(in)
		}
		return
	}
	var slots sync.WaitGroup
	for range spec.Slots {
		slots.Add(1)
		go func() {
			defer slots.Done()
			for j := range i.jobs {
				p.execute(runner, j)
			}
		}()
	}
	report(engine.NewVariantReady(i.id, spec.Variants[0]))
	load := func(v serving.VariantID, limit int) {
		timed, done := context.WithTimeout(ctx, p.c.LaunchTimeout)
		defer done()
		if err := runner.Load(timed, v, limit); err != nil {
			if ctx.Err() == nil {
				name := p.spec().Variants[v].Name
				p.c.Trouble(fmt.Errorf("load of variant %q on instance %d: %w", name, i.id, &LoadError{name, err}))
				report(engine.NewLoadFailed(i.id, v))
			}
			return
		}
		report(engine.NewVariantReady(i.id, v))
	}
	for _, v := range more {
		if ctx.Err() == nil {
			load(v, spec.BatchLimit)
		}
	}
	for ctx.Err() == nil {
		op, ok := i.ops.take()
		switch {
		case !ok:
			select {
			case <-i.ops.more:
			case <-ctx.Done():
			}
		case op.load:
			load(op.variant, op.limit)
		default:
			if err := runner.Unload(ctx, op.variant); err != nil {
				p.c.Trouble(fmt.Errorf("unload of variant %q on instance %d: %w", p.spec().Variants[op.variant].Name,
					i.id, err))
			}
		}
	}
	slots.Wait() // stop has closed jobs
	if err := runner.Close(); err != nil {
		p.c.Trouble(fmt.Errorf("release of instance %d: %w", i.id, err))
	}
}

// take removes the first operation; false where there is none.
func (o *operations) take() (operation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == 0 {
		return operation{}, false
	}
	op := o.list[0]
	o.list = o.list[1:]
	return op, true
}

// control queues an operation. It does nothing without an instance.
func (i *instance) control(op operation) {
	if i == nil {
		return
	}
	i.ops.mu.Lock()
	i.ops.list = append(i.ops.list, op)
	i.ops.mu.Unlock()
	select {
	case i.ops.more <- struct{}{}:
	default:
	}
}

// stop ends an instance. No job may be sent to it any more; its context ends, and running batches may finish.
func (i *instance) stop() {
	close(i.jobs)
	i.cancel()
}

// run hands a batch to its instance.
func (p *Plane) run(now serving.Time, d *engine.Decision) {
	j := &job{instance: p.instances[d.Instance], started: now}
	j.limit = p.runLimit(d)
	j.io = p.newStageIO(d)
	if p.c.Engine.SecondAnswers() {
		j.confidence = p.spec().Stages[d.Stage].Confidence(d.Variant)
	}
	j.batch = Batch{ID: d.Batch, Variant: d.Variant, Items: int(d.Items), Portions: make([]Portion, len(d.Tasks))}
	for k := range d.Tasks {
		part := &d.Tasks[k]
		to := &j.batch.Portions[k]
		to.Query, to.Items, to.Offset = part.Query, int(part.Items), int(part.Offset)
		c := p.calls[part.Query]
		if c == nil {
			j.err = fmt.Errorf("query %d has no caller", part.Query)
			continue
		}
		if c.partials != nil {
			to.Partial = c.partials.next(c.request.Outputs)
		}
		var err error
		if j.io != nil {
			to.Inputs, err = j.io.inputs(k, c, to)
		} else {
			to.Inputs, err = c.request.rows(to.Offset, to.Items)
		}
		to.Wanted = j.wanted(c)
		if j.confidence != nil && to.Wanted != nil && !slices.Contains(to.Wanted, j.confidence.Output) {
			to.Wanted = nil // any output may be the one that tells
		}
		if err != nil {
			j.err = err
		}
	}
	p.jobs[d.Batch] = j
	j.instance.jobs <- j // has room for every slot
}

// execute runs a batch on the goroutine of a slot and sends it back to the owner.
func (p *Plane) execute(r Runner, j *job) {
	if j.err == nil && j.io != nil {
		j.err = p.loadStates(j)
	}
	begun := time.Now()
	p.slack.start.add(p.Now().Sub(j.started))
	if j.err == nil {
		j.err = Safely("runtime", func() error { return r.Run(j.instance.ctx, &j.batch) })
		if j.err != nil {
			p.tellPanic(j.err)
		}
	}
	j.took = time.Since(begun)
	j.ended = p.Now()
	p.send(message{job: j})
}

// tellPanic reports an error that is a panic of a runtime.
func (p *Plane) tellPanic(err error) {
	if panicked := (*Panic)(nil); errors.As(err, &panicked) {
		p.c.Trouble(err)
	}
}

// finish turns a batch that has ended into an input, and takes over its outputs or its error.
func (p *Plane) finish(m *message) {
	j := m.job
	p.slack.end.add(p.Now().Sub(j.ended))
	lost := p.jobs[j.batch.ID] == nil // its instance already counts as lost
	delete(p.jobs, j.batch.ID)
	in := engine.NewBatchDone(j.batch.ID, j.instance.id, j.took, nil)
	if engine.Stale(p.c.Engine, &in) || lost {
		return
	}
	if j.err == nil {
		in.Confidence = j.confidences()
		j.err = p.boundOutputs(j)
	}
	if j.err != nil {
		for k := range j.batch.Portions {
			if c := p.calls[j.batch.Portions[k].Query]; c != nil {
				c.cause = j.err
			}
		}
	} else if j.io != nil {
		j.err = p.checkOutputs(j)
	}
	switch {
	case j.err == nil:
		in.Emitted, in.Lengths = p.storeOutputs(j, &in)
	case errors.Is(j.err, ErrInstanceLost):
		p.c.Trouble(fmt.Errorf("instance %d: %w", j.instance.id, j.err))
		in = engine.NewInstanceLost(j.instance.id)
	case errors.Is(j.err, ErrOutOfMemory):
		in.Result = engine.Exceeded
	default:
		in.Result = engine.Broken
		w := j.instance.worker
		if err := p.breakages.report(p.Now(), w, p.spec().Workers[w].Name, j); err != nil {
			p.c.Trouble(err)
		}
	}
	p.in = append(p.in, in)
}

// runLimit is how long a batch may run until its instance counts as lost.
func (p *Plane) runLimit(d *engine.Decision) time.Duration {
	if p.c.RunTimeout > 0 {
		return p.c.RunTimeout
	}
	return engine.RunLimit(p.spec(), d)
}

// boundOutputs leaves each query of a batch the outputs that it wants. It returns an error for a batch of which a query
// has larger ones than allowed, or items that do not fit the others.
func (p *Plane) boundOutputs(j *job) error {
	for k := range j.batch.Portions {
		x := &j.batch.Portions[k]
		c := p.calls[x.Query]
		if c != nil && j.confidence != nil {
			x.Wanted = j.wanted(c)
		}
		x.Outputs = only(x.Outputs, x.Wanted)
		if err := within(x.Outputs, p.c.Output); err != nil {
			return err
		}
		if c != nil && j.io == nil && x.Items < c.request.Items {
			if err := replaces(c.outputs, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportOverdue reports instances lost on which a batch has run for longer than its limit, so that a runtime that
// hangs does not hold queries for ever. The engine then stops the instance, which ends the context of the batch.
func (p *Plane) reportOverdue(now serving.Time) {
	for id, j := range p.jobs {
		if now.Sub(j.started) <= j.limit {
			continue
		}
		delete(p.jobs, id)
		in := engine.NewInstanceLost(j.instance.id)
		if !engine.Stale(p.c.Engine, &in) {
			p.c.Trouble(fmt.Errorf("instance %d: batch %d has not ended in %v, counted as lost", j.instance.id, id,
				j.limit))
			p.in = append(p.in, in)
		}
	}
	engine.Sort(p.in)
}
