package functions

import (
	"fmt"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// maxNames bounds the functions whose events are kept: those of the function without events for longest are dropped
// first.
const maxNames = 1000

// events keeps the latest events of every function, made from the inputs and decisions of the engine.
type events struct {
	mu    sync.Mutex
	each  int // of a function
	seq   uint64
	rings map[string][]Event

	// Used on the goroutine of the engine's owner only.
	spec      *serving.Spec
	instances map[serving.InstanceID]*instanceState
	apps      map[serving.AppID]*appState
}

// instanceState is an instance that is launched.
type instanceState struct {
	app      serving.AppID
	launched serving.Time
	ready    bool
}

// appState is the instances of an app and the queries that found none.
type appState struct {
	ready int          // instances
	since serving.Time // arrival of the first query that found none
	waits int          // queries that found none since an instance was last ready
}

func newEvents(each int, spec *serving.Spec) *events {
	return &events{
		each: each, rings: make(map[string][]Event), spec: spec, instances: make(map[serving.InstanceID]*instanceState),
		apps: make(map[serving.AppID]*appState),
	}
}

// add keeps an event. An event equal to the last one of its function raises that one's count.
func (e *events) add(name, kind, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seq++
	now := time.Now().UTC().Truncate(time.Millisecond)
	ring := e.rings[name]
	if n := len(ring); n > 0 && ring[n-1].Kind == kind && ring[n-1].Text == text {
		ring[n-1].Seq, ring[n-1].At = e.seq, now
		ring[n-1].Count++
		return
	}
	if ring == nil && len(e.rings) >= maxNames {
		oldest := ""
		for other, r := range e.rings {
			if o := e.rings[oldest]; o == nil || r[len(r)-1].Seq < o[len(o)-1].Seq {
				oldest = other
			}
		}
		delete(e.rings, oldest)
	}
	if len(ring) >= e.each {
		ring = append(ring[:0:0], ring[len(ring)-e.each+1:]...)
	}
	e.rings[name] = append(ring, Event{Seq: e.seq, At: now, Kind: kind, Text: text, Count: 1})
}

func (e *events) of(name string, after uint64, limit int) (out []Event, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ring, known := e.rings[name]
	for _, x := range ring {
		if x.Seq > after {
			out = append(out, x)
		}
	}
	return append([]Event(nil), out[max(0, len(out)-limit):]...), known
}

func (e *events) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	for k := range in {
		switch x := &in[k]; x.Kind {
		case engine.SpecGrown:
			for _, a := range x.Growth.Spec.FreshSince(e.spec).Apps {
				delete(e.apps, a)
			}
			e.spec = x.Growth.Spec
		case engine.QueryArrived:
			if a := x.Query.App; a >= 0 && int(a) < len(e.spec.Apps) {
				if c := e.app(a); c.ready == 0 && !e.spec.Apps[a].Closed {
					if c.waits++; c.waits == 1 {
						c.since = now
					}
				}
			}
		case engine.InstanceChanged:
			e.changed(now, x)
		}
	}
	for k := range out {
		e.decided(now, &out[k])
	}
}

func (e *events) app(a serving.AppID) *appState {
	c := e.apps[a]
	if c == nil {
		c = &appState{}
		e.apps[a] = c
	}
	return c
}

func (e *events) addf(a serving.AppID, kind, format string, args ...any) {
	e.add(e.spec.Apps[a].Name, kind, fmt.Sprintf(format, args...))
}

func (e *events) variant(v serving.VariantID) string { return e.spec.Variants[v].Name }

func (e *events) changed(now serving.Time, x *engine.Input) {
	i := e.instances[x.Instance]
	if i == nil {
		return
	}
	switch x.Change {
	case engine.VariantReady:
		e.addf(i.app, "ready", "%s on instance %d", e.variant(x.Variant), x.Instance)
		if i.ready {
			return
		}
		i.ready = true
		c := e.app(i.app)
		if c.ready++; c.ready == 1 && c.waits > 0 {
			e.addf(i.app, "cold start", "%d queries came while no instance was ready, the first %v ago", c.waits,
				now.Sub(c.since).Round(time.Millisecond))
			c.waits = 0
		}
	case engine.LoadFailed:
		e.addf(i.app, "failure", "%s could not be loaded on instance %d", e.variant(x.Variant), x.Instance)
	case engine.Lost:
		e.addf(i.app, "failure", "instance %d was lost", x.Instance)
	}
}

func (e *events) decided(now serving.Time, d *engine.Decision) {
	switch d.Kind {
	case engine.LaunchInstance:
		a := e.spec.Stages[d.Launch.Stage].App
		e.instances[d.Instance] = &instanceState{app: a, launched: now}
		cores := "sharing all cores"
		if d.Launch.Cores > 0 {
			cores = fmt.Sprintf("%d cores", d.Launch.Cores)
		}
		e.addf(a, "launch", "instance %d on %s, %s, batches of up to %d: %s", d.Instance,
			e.spec.Workers[d.Launch.Key.Worker].Name, cores, d.Launch.BatchLimit, d.Reason)
	case engine.StopInstance:
		i := e.instances[d.Instance]
		if i == nil {
			return
		}
		if i.ready {
			e.app(i.app).ready--
		}
		e.addf(i.app, "stop", "instance %d after %v: %s", d.Instance, now.Sub(i.launched).Round(time.Millisecond),
			d.Reason)
		delete(e.instances, d.Instance)
	case engine.LoadVariant, engine.UnloadVariant:
		if i := e.instances[d.Instance]; i != nil {
			kind := "load"
			if d.Kind == engine.UnloadVariant {
				kind = "unload"
			}
			e.addf(i.app, kind, "%s on instance %d: %s", e.variant(d.Variant), d.Instance, d.Reason)
		}
	case engine.EndQuery:
		if d.App < 0 || int(d.App) >= len(e.spec.Apps) {
			return
		}
		switch d.Outcome {
		case serving.Failed, serving.Dropped, serving.Refused:
			e.addf(d.App, "failure", "queries %s: %s", d.Outcome, d.Reason)
		case serving.Served:
			if d.Late {
				e.addf(d.App, "late", "queries answered after their deadline")
			}
		}
	}
}
