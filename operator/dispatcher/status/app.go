package status

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Said is what a diagnosis of the plan says: what it lacks, and what would mend that, in sentences.
type Said struct {
	Lacks    string
	Remedies []string
}

// appStatus makes the fields of an app's status that the holder of its cell writes.
type appStatus struct {
	rate, violations, accuracy, dollars steady
	conditions                          map[string]condition
}

// condition is one as it was last shown.
type condition struct {
	status, reason, message string
	since                   string
}

// fields returns the status. Equal figures give equal fields.
func (s *appStatus) fields(a App, said Said, now time.Time) map[string]any {
	out := map[string]any{
		"rate": trimmed(s.rate.show(a.Rate, 0.05)), "costPerHour": trimmed(s.dollars.show(a.Dollars, 0.0005)),
		"machines": int64(a.Machines), "instances": int64(a.Instances),
	}
	if a.Violations != nil {
		out["violations"] = percent(s.violations.show(*a.Violations, 0.001))
	}
	if a.Accuracy != nil {
		out["accuracy"] = trimmed(s.accuracy.show(*a.Accuracy, 0.001))
	}
	if said.Lacks != "" {
		out["lacks"] = said.Lacks
		list := []any{}
		for _, m := range said.Remedies {
			list = append(list, m)
		}
		out["mends"] = list
	}
	out["conditions"] = []any{
		s.condition("Ready", ready(a), now), s.condition("ObjectiveMet", s.objective(a), now),
		s.condition("Planned", planned(a, said), now), s.condition("ModelsReady", modelsReady(a), now),
	}
	return out
}

// judged is what a condition says.
type judged struct{ status, reason, message string }

const (
	yes     = string(metav1.ConditionTrue)
	no      = string(metav1.ConditionFalse)
	unknown = string(metav1.ConditionUnknown)
)

func ready(a App) judged {
	switch {
	case a.Ready:
		return judged{yes, "Answering", "queries are answered"}
	case !a.Planned && a.Demand == 0:
		return judged{no, "Asleep", "nothing is planned for it: a query wakes it up, where its system does that"}
	}
	return judged{no, "NoInstance", "a stage has no ready instance: machines or models are on their way, " +
		"or cannot be had"}
}

// objective judges the queries of the last minute.
func (s *appStatus) objective(a App) judged {
	allowed := 1 - a.Percentile/100
	if a.Violations == nil {
		return judged{unknown, "NoQueries", "there was no query in the last minute"}
	}
	promise := fmt.Sprintf("%v of the queries within %v", percent(a.Percentile/100), a.Latency)
	if *a.Violations <= allowed+1e-9 {
		return judged{yes, "InTime", promise}
	}
	return judged{no, "TooManyLate", fmt.Sprintf("the objective is %s, and %s were late or dropped in the last minute",
		promise, percent(s.violations.shown))}
}

func planned(a App, said Said) judged {
	switch {
	case said.Lacks != "":
		return judged{no, "Lacking", said.Lacks}
	case a.Shed > 0.01*a.Demand && a.Shed > 0:
		return judged{no, "Shed", fmt.Sprintf("the plan leaves out %s of %s queries/s", trimmed(a.Shed),
			trimmed(a.Demand))}
	}
	return judged{yes, "Carried", "the plan carries the demand"}
}

func modelsReady(a App) judged {
	if len(a.Broken) == 0 {
		return judged{yes, "Loaded", "no load has failed of late"}
	}
	var list []string
	for _, x := range a.Broken {
		why := x.Why
		if why == "" {
			why = "see the log of a worker pod or its init step"
		}
		list = append(list, fmt.Sprintf("%s cannot be loaded: %.400s", x.Variant, why))
	}
	return judged{no, "LoadFailed", strings.Join(list, "; ") + ". Plans leave it out until it is tried again"}
}

// condition returns a condition with the time at which its status changed.
func (s *appStatus) condition(kind string, j judged, now time.Time) map[string]any {
	if s.conditions == nil {
		s.conditions = make(map[string]condition)
	}
	c, ok := s.conditions[kind]
	if !ok || c.status != j.status {
		c.since = now.UTC().Format(time.RFC3339)
	}
	c.status, c.reason, c.message = j.status, j.reason, j.message
	s.conditions[kind] = c
	return map[string]any{"type": kind, "status": c.status, "reason": c.reason, "message": c.message,
		"lastTransitionTime": c.since}
}
