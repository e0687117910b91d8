package telemetry

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// complexity measures scaling and ballooning factors from the batches that run, whether or not plans use them.
type complexity struct {
	spec       *serving.Spec
	names      *names
	factors    *monitor.Factors
	running    map[serving.BatchID]*contentBatch
	spare      []*contentBatch
	ballooning []float64 // factors by StageID that Expected of batches contains; nil for none
	shown      serving.Time

	scaling, ballooned *prometheus.GaugeVec
}

// contentBatch is a batch that is running.
type contentBatch struct {
	instance serving.InstanceID
	stage    serving.StageID
	believed time.Duration // expected time without ballooning
	items    []int32       // by part of the batch
}

// showEvery is the least time between two settings of the gauges.
const showEvery = time.Second

func newComplexity(r registry, spec *serving.Spec, n *names) *complexity {
	return &complexity{
		spec: spec, names: n, factors: monitor.NewFactors(spec), running: make(map[serving.BatchID]*contentBatch),
		shown: serving.Time(-showEvery),
		scaling: r.gauge("sluice_scaling_factor",
			"Items sent along an edge of an app's graph for each item served, as a plan made now would take it.",
			"app", "from", "to"),
		ballooned: r.gauge("sluice_ballooning_factor", "Time that the batches of a stage take for each second "+
			"believed, at least 1, as a plan made now would take it.", "app", "stage"),
	}
}

func (c *complexity) grow(spec *serving.Spec) {
	fresh := spec.FreshSince(c.spec).Stages
	c.spec = spec
	c.factors.Grow(spec, fresh)
	c.ballooning = slices.Clone(c.ballooning)
	serving.Forget(c.ballooning, fresh, 1)
}

func (c *complexity) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	for k := range in {
		if x := &in[k]; x.Kind == engine.BatchDone {
			if b := c.running[x.Batch]; b != nil {
				c.ended(now, b, x)
				delete(c.running, x.Batch)
				c.spare = append(c.spare, b)
			}
		}
	}
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.StartBatch:
			c.running[d.Batch] = c.started(d)
		case engine.StopInstance:
			for id, b := range c.running {
				if b.instance == d.Instance {
					delete(c.running, id)
				}
			}
		case engine.RequestPlan:
			c.ballooning = d.Request.Ballooning
		}
	}
	if now.Sub(c.shown) >= showEvery {
		c.show(now)
	}
}

func (c *complexity) started(d *engine.Decision) *contentBatch {
	b := &contentBatch{}
	if n := len(c.spare); n > 0 {
		b, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	b.instance, b.stage, b.believed, b.items = d.Instance, d.Stage, d.Expected, b.items[:0]
	if int(d.Stage) < len(c.ballooning) {
		b.believed = time.Duration(float64(d.Expected) / c.ballooning[d.Stage])
	}
	for _, t := range d.Tasks {
		b.items = append(b.items, t.Items)
	}
	return b
}

func (c *complexity) ended(now serving.Time, b *contentBatch, x *engine.Input) {
	if x.Result != engine.OK {
		return
	}
	c.factors.AddBatch(now, b.stage, b.believed, x.Took)
	for task, items := range b.items {
		c.factors.AddTask(now, b.stage, task, int(items), x.Emitted)
	}
}

// show sets the factors of the apps that have series of their own: factors cannot be added up.
func (c *complexity) show(now serving.Time) {
	c.shown = now
	for s := range c.spec.Stages {
		x, id := &c.spec.Stages[s], serving.StageID(s)
		app := c.spec.Apps[x.App].Name
		if c.spec.Apps[x.App].Closed || !c.names.has(app) {
			continue
		}
		c.ballooned.WithLabelValues(app, x.Name).Set(c.factors.Ballooning(now, id))
		for k, e := range x.Next {
			c.scaling.WithLabelValues(app, x.Name, c.spec.Stages[e.To].Name).Set(c.factors.Scaling(now, id, k))
		}
	}
}
