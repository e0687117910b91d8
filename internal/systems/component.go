package systems

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/algo/spelling"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
)

// Kind is a role of components in a system.
type Kind string

// The kinds of components, in the order of help texts. A keep-alive rule belongs to a scaler that lets apps go. The
// engine is in every system.
const (
	Planner   Kind = "planner"
	Router    Kind = "router"
	Batcher   Kind = "batcher"
	Scaler    Kind = "scaler"
	KeepAlive Kind = "keep-alive rule"
	Engine    Kind = "engine"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Planner, Router, Batcher, Scaler, KeepAlive, Engine} }

// Component is a part that systems are composed of.
type Component struct {
	Kind   Kind
	Name   string // unique in its kind
	Doc    string // the rest of a sentence that begins with the name
	Source string // paper and section
}

// String returns the component's kind and name; "the engine" for the engine.
func (p Component) String() string {
	if p.Kind == Engine {
		return "the engine"
	}
	return fmt.Sprintf("%s %s", p.Kind, p.Name)
}

// Components returns all components of a kind.
func Components(k Kind) []Component {
	switch k {
	case Planner:
		return componentsOf(k, planners)
	case Router:
		return componentsOf(k, routers)
	case Batcher:
		return componentsOf(k, batchers)
	case Scaler:
		return componentsOf(k, scalers)
	case KeepAlive:
		return componentsOf(k, keepAlives)
	case Engine:
		return []Component{{Engine, "engine", "carries out the decisions of the components, in every system", "ours"}}
	}
	return nil
}

// registered is a component with the function that makes it. Rules keep state: every engine needs its own.
type registered[M any] struct {
	name, doc, source string
	make              M
}

// The tables of components. Each paper's file has its own.
type (
	plannerTable = []registered[func(PlannerInputs, Options) (plan.Planner, error)]
	routerTable  = []registered[func(Options) route.Router]
	batcherTable = []registered[func(Options) batch.Rule]
	scalerTable  = []registered[func(Options) scale.Scaler]
)

func componentsOf[M any](k Kind, list []registered[M]) []Component {
	return each(list, func(r registered[M]) Component { return Component{k, r.name, r.doc, r.source} })
}

func namesOf[M any](list []registered[M]) []string {
	return each(list, func(r registered[M]) string { return r.name })
}

// find returns the function that makes a component.
func find[M any](k Kind, list []registered[M], name string) (M, error) {
	at := slices.IndexFunc(list, func(r registered[M]) bool { return r.name == name })
	if at < 0 {
		var none M
		return none, unknown(string(k), name, namesOf(list))
	}
	return list[at].make, nil
}

// unknown is the error for a name that does not exist.
func unknown(what, name string, known []string) error {
	return fmt.Errorf("%s %q does not exist%s: use one of %s", what, name, didYouMean(name, known),
		strings.Join(known, ", "))
}

func didYouMean(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

func each[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i := range list {
		out[i] = of(list[i])
	}
	return out
}
