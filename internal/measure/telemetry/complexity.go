package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// complexity measures scaling and ballooning factors from the batches that run, whether or not plans use them.
type complexity struct {
	spec    *serving.Spec
	names   *names
	factors *monitor.Factors
	shown   serving.Time

	scaling, ballooned *prometheus.GaugeVec
}

// showEvery is the least time between two settings of the gauges.
const showEvery = time.Second

func newComplexity(r registry, spec *serving.Spec, n *names) *complexity {
	return &complexity{
		spec: spec, names: n, factors: monitor.NewFactors(spec), shown: serving.Time(-showEvery),
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
}

func (c *complexity) observe(s *steps.Step) {
	for k := range s.In {
		b := s.Ended(k)
		if b == nil || b.Result != engine.OK {
			continue
		}
		c.factors.AddBatch(s.Now, b.Stage, b.Plain, b.Took)
		for task := range b.Tasks {
			c.factors.AddTask(s.Now, b.Stage, task, int(b.Tasks[task].Items), s.In[k].Emitted)
		}
	}
	if s.Now.Sub(c.shown) >= showEvery {
		c.show(s.Now)
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
