package sim

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/sim/truth"
)

// machines runs batches. Batches that run beside each other share a machine's time: while n of them run, each advances
// at the speed that it has with n at once, as the model of the machines says. So a batch becomes slower when another
// one starts beside it and faster when one ends, and no machine does more work than it was measured to do.
type machines struct {
	model  truth.Model
	long   truth.Stretching // model, where lengths count; else nil
	runs   map[serving.BatchID]*run
	sites  map[site]*siteRuns
	dirty  []site // whose batches have begun or ended in this step, each once
	unused []*run
}

// site is what batches share: a worker, or the part of one that an instance has for itself.
type site struct {
	worker   serving.WorkerID
	instance serving.InstanceID // 0 where the instances of the worker share it
}

type siteRuns struct {
	runs  []*run
	dirty bool
}

// run is a batch that runs.
type run struct {
	batch    serving.BatchID
	instance serving.InstanceID
	variant  serving.VariantID
	device   serving.DeviceTypeID
	items    int
	runs     []serving.Run // where lengths count
	drawn    float64       // what is random of it: truth.Model.Draw
	balloon  float64       // the factor by which its content lengthens it
	sent     []int32       // items along each edge, task by task
	lengths  []int32       // of the longest of them; nil where none is known
	sure     []float32     // as engine.Input.Confidence
	breaks   bool
	hangs    bool // it never ends

	site        site
	began       serving.Time
	concurrency int           // batches that run on the site, itself included
	took        time.Duration // that the whole batch takes at this concurrency; 0 before it is known
	since       serving.Time  // when took last changed
	done        float64       // the part of the batch that was done by then, in [0, 1]
	ends        serving.Time
}

func newMachines(m truth.Model) *machines {
	x := &machines{model: m, runs: make(map[serving.BatchID]*run), sites: make(map[site]*siteRuns)}
	if long, ok := m.(truth.Stretching); ok && long.Stretches() {
		x.long = long
	}
	return x
}

func siteOf(i *fleet.Instance) site {
	if i.SharesWorker() {
		return site{worker: i.Worker()}
	}
	return site{i.Worker(), i.ID()}
}

// start takes up a batch that begins on an instance, with so many others there. schedule gives it an end.
func (m *machines) start(now serving.Time, i *fleet.Instance, concurrency int, d *engine.Decision) *run {
	var r *run
	if n := len(m.unused); n > 0 {
		r, m.unused = m.unused[n-1], m.unused[:n-1]
	} else {
		r = &run{}
	}
	*r = run{
		runs: r.runs[:0], batch: d.Batch, instance: d.Instance, variant: d.Variant, device: i.DeviceType(),
		items: int(d.Items), site: siteOf(i), began: now, since: now,
	}
	r.drawn = m.model.Draw(r.variant, r.device, r.items, concurrency)
	s := m.touch(r.site)
	s.runs = append(s.runs, r)
	m.runs[r.batch] = r
	return r
}

// touch notes that the batches of a site begin or end.
func (m *machines) touch(at site) *siteRuns {
	s := m.sites[at]
	if s == nil {
		s = &siteRuns{}
		m.sites[at] = s
	}
	if !s.dirty {
		s.dirty = true
		m.dirty = append(m.dirty, at)
	}
	return s
}

// end takes a batch off its site if now is its end; false for an end that was moved.
func (m *machines) end(id serving.BatchID, now serving.Time) bool {
	r := m.runs[id]
	if r == nil || r.ends != now {
		return false
	}
	m.remove(r)
	return true
}

func (m *machines) remove(r *run) {
	s := m.touch(r.site)
	s.runs = slices.DeleteFunc(s.runs, func(x *run) bool { return x == r })
	delete(m.runs, r.batch)
	r.sent, r.lengths = nil, nil
	m.unused = append(m.unused, r)
}

// lose takes all batches of an instance off its site.
func (m *machines) lose(i *fleet.Instance) {
	for n := range i.Running() {
		if r := m.runs[i.Batch(n).ID]; r != nil {
			m.remove(r)
		}
	}
}

// schedule calls at for every batch whose end has moved or is new, after all that begins and ends at an instant.
func (m *machines) schedule(now serving.Time, at func(*run)) {
	for _, where := range m.dirty {
		s := m.sites[where]
		s.dirty = false
		if len(s.runs) == 0 {
			delete(m.sites, where)
			continue
		}
		for _, r := range s.runs {
			if m.advance(r, now, len(s.runs)) {
				at(r)
			}
		}
	}
	m.dirty = m.dirty[:0]
}

// advance has a run go on with so many batches on its site. It returns true when that moves the run's end.
func (m *machines) advance(r *run, now serving.Time, concurrency int) bool {
	if r.concurrency == concurrency {
		return false
	}
	r.concurrency = concurrency
	var took time.Duration
	if len(r.runs) > 0 {
		took = m.long.ServiceOf(r.variant, r.device, r.runs, concurrency, r.drawn)
	} else {
		took = m.model.Service(r.variant, r.device, r.items, concurrency, r.drawn)
	}
	took = truth.Ballooned(took, r.balloon)
	switch r.took {
	case took:
		return false
	case 0:
		r.took, r.ends = took, now.Add(took)
		return true
	}
	r.done = min(r.done+float64(now-r.since)/float64(r.took), 1)
	r.since, r.took = now, took
	before := r.ends
	r.ends = max(now.Add(time.Duration(math.Ceil((1-r.done)*float64(took)))), now+1)
	return r.ends != before
}
