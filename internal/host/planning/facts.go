package planning

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// Facts lists the numbers of a whole plan, each with its name.
func (v *Plan) Facts() (facts []questions.Fact) {
	fact := func(name, format string, args ...any) {
		facts = append(facts, questions.Fact{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if v.Accuracy != nil {
		fact("accuracy", "%s", quantity.Accuracy(*v.Accuracy))
	}
	for _, a := range v.Apps {
		if a.Target != nil && a.Accuracy != nil {
			reached := "reached"
			if *a.Missed > 0 {
				reached = fmt.Sprintf("missed: %s", quantity.Accuracy(*a.Accuracy))
			}
			fact("target", "%s for app %s, %s", quantity.Accuracy(*a.Target), a.Name, reached)
		}
	}
	for _, a := range v.Apps {
		if a.Second != nil && *a.Second >= 0.0005 { // else 0 would be printed
			fact("unsure", "a second answer for %s of the queries of app %s adds %.2f points of accuracy",
				quantity.Percent(*a.Second), a.Name, 100**a.SecondGain)
		}
	}
	if v.SecondSaved > 0 {
		fact("unsure", "the least rent is %s $/h lower by second answers", quantity.Dollars(v.SecondSaved))
	}
	if v.Gap != nil {
		fact("bound", "%s", proof(v))
	}
	if f := v.Forecast; f != nil {
		fact("forecast", "%s late (+- %s) at an accuracy of %s, simulated with %d queries",
			quantity.Percent(f.Violation), quantity.Percent(f.Deviation), quantity.Accuracy(f.Accuracy), f.Queries)
	}
	if v.Choice != "" {
		fact("choice", "%s", v.Choice)
	}
	if v.Fluid != nil {
		fact("utility", "%s", beside(v))
	}
	used := v.Workers - len(v.Idle)
	if v.Error == "" {
		cost := quantity.Dollars(v.CostPerHour) + " $/h"
		if v.CostUsed != nil {
			cost += fmt.Sprintf(" rented and %s $/h used", quantity.Dollars(*v.CostUsed))
		}
		fact("workers", "%d of %d in use, %s, %d variants to load", used, v.Workers, cost, v.Loads)
	}
	if len(v.Sharing) > 0 {
		fact("sharing", "the rule of planner %s leaves nothing to %s, which share workers with others", v.Planner,
			strings.Join(v.Sharing, ", "))
	}
	for _, x := range v.OutOfBounds {
		fact("bounds", "stage %s of app %s has %d instances, %s is %d: planner %s does not keep it, or memory is short",
			x.Stage, x.App, x.Instances, x.Setting, x.Bound, v.Planner)
	}
	if len(v.Short) > 0 {
		var more []string
		for _, name := range slices.Sorted(maps.Keys(v.Short)) {
			more = append(more, fmt.Sprintf("%d %s", v.Short[name], name))
		}
		fact("short", "%s more would carry all of it", strings.Join(more, ", "))
	}
	if d := v.Diagnosis; d != nil && d.Carried && v.Reach != nil {
		with := ""
		if d.Headroom > 1 {
			with = fmt.Sprintf(" with %s head-room", quantity.Percent(d.Headroom-1))
		}
		fact("room", "this fleet carries up to %s this demand, %s%s", quantity.Multiple(d.Multiple),
			quantity.Rate(*v.Reach), with)
	}
	return facts
}

// overFull is by how much a plan's utility may be above the fluid bound by rounding.
const overFull = 1.001

// beside says how far a plan is from what the machines have time for.
func beside(v *Plan) string {
	f := v.Fluid
	out := fmt.Sprintf("%s of at most %s on these machines", quantity.Percent(*v.Utility), quantity.Percent(f.Utility))
	if f.Ratio > overFull {
		out += ": the plan counts on more time than they have"
	}
	if f.CostPerHour != nil {
		out += fmt.Sprintf("; the same for at least %s $/h", quantity.Dollars(*f.CostPerHour))
	}
	return out
}

// proof returns in words how good a plan is proven to be.
func proof(v *Plan) string {
	unit := "the apps' mean accuracy, each relative to its best variant's"
	switch v.Goal {
	case "fairness":
		unit = "the apps' smallest accuracy, each relative to its best variant's"
	case "blend":
		unit = "a blend of the apps' mean and smallest accuracy"
	case "throughput":
		unit = "the multiple of the demand that is carried"
	}
	if v.Goal == GoalCost {
		if *v.Gap < 5e-5 {
			return quantity.Dollars(*v.Bound) + " $/h, which is reached: no plan rents less"
		}
		return fmt.Sprintf("%s $/h, which no plan rents less than; this one is %s above", quantity.Dollars(*v.Bound),
			quantity.Percent(*v.Gap))
	}
	if *v.Gap < 5e-5 {
		return fmt.Sprintf("%.4f for %s, which is reached", *v.Bound, unit)
	}
	return fmt.Sprintf("%.4f for %s; the plan is %s below", *v.Bound, unit, quantity.Percent(*v.Gap))
}
