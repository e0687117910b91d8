package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/serving"
)

// Other is the label of all apps, variants and models together that are beyond Options.Apps.
const Other = "(other)"

// names are the apps that have series of their own: those that were called first, up to a limit. Who reads metrics, and
// who keeps them, pays for every series, and a server may have thousands of models that nobody calls.
type names struct {
	limit int
	full  func(app string) // called once, with the first app beyond the limit; nil for none

	mu   sync.Mutex // collectors ask, too
	own  map[string]bool
	told bool
}

func newNames(limit int, full func(string)) *names {
	return &names{limit: limit, full: full, own: make(map[string]bool)}
}

// claim reports whether an app has series of its own, and gives it some while there is room.
func (n *names) claim(app string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.own[app]:
		return true
	case len(n.own) < n.limit:
		n.own[app] = true
		return true
	}
	if !n.told && n.full != nil {
		n.told = true
		n.full(app)
	}
	return false
}

// has reports whether an app has series of its own.
func (n *names) has(app string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.own[app]
}

// drop makes room for another app.
func (n *names) drop(app string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.own, app)
}

// vector is a vector of Prometheus.
type vector interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// labelled are vectors by the label that all of their series have.
type labelled map[string][]vector

// delete deletes the series with these labels. The first label names the vectors.
func (l labelled) delete(label, value string, more ...string) {
	match := prometheus.Labels{label: value}
	for k := 0; k < len(more); k += 2 {
		match[more[k]] = more[k+1]
	}
	for _, v := range l[label] {
		v.DeletePartialMatch(match)
	}
}

// label is what the series of a variant are called by. Those of its app have no variant, and the version of queries
// that no version has answered.
type label struct{ app, variant, model, version string }

// labelsOf are those of an app's variant; serving.None for the app.
func labelsOf(spec *serving.Spec, a serving.AppID, v serving.VariantID) label {
	app := &spec.Apps[a]
	x := label{app: app.Name, model: app.ClientName()}
	if v == serving.None {
		last := spec.Stages[app.Stages[len(app.Stages)-1]].Variants
		x.version = spec.ClientVersion(last[len(last)-1])
		return x
	}
	x.variant, x.version = spec.Variants[v].Name, spec.ClientVersion(v)
	if app.Composed() {
		if x.model, x.version = x.variant, spec.Variants[v].Version; x.version == "" {
			x.version = "1"
		}
	}
	return x
}

// openLabels are the labels of the apps that take queries, and of the variants that may answer them, in parts.
func openLabels(spec *serving.Spec) map[label]bool {
	out := make(map[label]bool)
	add := func(x label) {
		out[label{app: x.app}], out[label{model: x.model}] = true, true
		out[label{app: x.app, variant: x.variant}], out[label{model: x.model, version: x.version}] = true, true
	}
	for a := range spec.Apps {
		if spec.Apps[a].Closed {
			continue
		}
		add(labelsOf(spec, serving.AppID(a), serving.None))
		for _, s := range spec.Apps[a].Stages {
			for _, v := range spec.Stages[s].Variants {
				if !spec.Variants[v].Retired {
					add(labelsOf(spec, serving.AppID(a), v))
				}
			}
		}
	}
	return out
}
