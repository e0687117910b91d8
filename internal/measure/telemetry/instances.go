package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/serving"
)

// instanceCounts counts instances by app and state. Apps have names here from their first instance on, whether or not
// they are called.
type instanceCounts struct {
	spec  *serving.Spec
	names *names
	gauge *prometheus.GaugeVec
	all   map[serving.InstanceID]instanceState
	apps  map[string]instancesOf
}

type instanceState struct {
	app         string
	ready, kept bool
}

// instancesOf are the instances of the apps of one name, of which app is the latest.
type instancesOf struct {
	app   serving.AppID
	n     int
	label string
}

var instanceStates = [...]string{"launching", "ready", "kept"}

func newInstanceCounts(r registry, limit int) *instanceCounts {
	c := &instanceCounts{
		names: newNames(limit, nil), all: make(map[serving.InstanceID]instanceState),
		apps: make(map[string]instancesOf), gauge: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "sluice_instances", Help: "Instances, by state."}, []string{"app", "state"}),
	}
	r.MustRegister(c.gauge)
	return c
}

// grow drops the apps that are gone.
func (c *instanceCounts) grow(spec *serving.Spec) {
	c.spec = spec
	for name := range c.apps {
		c.drop(name)
	}
}

// drop deletes the series of an app that is closed and has no instance left.
func (c *instanceCounts) drop(name string) {
	x := c.apps[name]
	if app := &c.spec.Apps[x.app]; x.n > 0 || app.Name == name && !app.Closed {
		return
	}
	delete(c.apps, name)
	if c.names.drop(name); x.label == Other {
		return
	}
	for _, state := range instanceStates {
		c.gauge.DeleteLabelValues(name, state)
	}
}

func (c *instanceCounts) launched(i serving.InstanceID, a serving.AppID) {
	name := c.spec.Apps[a].Name
	x := c.apps[name]
	if x.app, x.n = a, x.n+1; x.label == "" {
		if x.label = name; !c.names.claim(name) {
			x.label = Other
		}
	}
	c.apps[name], c.all[i] = x, instanceState{app: name}
	c.count(c.all[i], 1)
}

func (c *instanceCounts) ready(i serving.InstanceID) {
	c.change(i, func(s *instanceState) { s.ready = true })
}

func (c *instanceCounts) keep(i serving.InstanceID, kept bool) {
	c.change(i, func(s *instanceState) { s.kept = kept })
}

// change moves an instance to another state.
func (c *instanceCounts) change(i serving.InstanceID, how func(*instanceState)) {
	if s, ok := c.all[i]; ok {
		c.count(s, -1)
		how(&s)
		c.all[i] = s
		c.count(s, 1)
	}
}

func (c *instanceCounts) stopped(i serving.InstanceID) {
	s, ok := c.all[i]
	if !ok {
		return
	}
	c.count(s, -1)
	delete(c.all, i)
	x := c.apps[s.app]
	x.n--
	c.apps[s.app] = x
	c.drop(s.app)
}

func (c *instanceCounts) count(s instanceState, by float64) {
	state := "launching"
	if s.kept {
		state = "kept"
	} else if s.ready {
		state = "ready"
	}
	c.gauge.WithLabelValues(c.apps[s.app].label, state).Add(by)
}
