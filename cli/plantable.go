package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/host/planning"
	"github.com/sluice-serving/sluice/measure/quantity"
)

// printPlan writes one plan in full.
func printPlan(w io.Writer, v *planning.Plan) error {
	head := fmt.Sprintf("system %s, planner %s, ", v.System, v.Planner)
	if v.Demand > 0 {
		head += "demand " + quantity.Rate(v.Demand)
	} else {
		head += "no demand given: the plan of an idle start"
	}
	fmt.Fprintf(w, "%s\n\n", head)
	rows := [][]string{{"APP", "DEMAND", "SERVED", "SHED", "CAPACITY", "ACCURACY", "SLO"}}
	for _, a := range v.Apps {
		shed := "-"
		if a.Shed > 0 {
			shed = quantity.Rate(a.Shed)
		}
		rows = append(rows, []string{
			a.Name, quantity.Rate(a.Demand), quantity.Rate(a.Served), shed, quantity.Rate(a.Capacity),
			accuracyOr(a.Accuracy),
			quantity.Number(a.SLOMS) + " ms",
		})
	}
	if err := columns(w, "lrrrrrr", rows); err != nil {
		return err
	}
	if len(v.Stages) > 0 {
		fmt.Fprintln(w)
		if err := printStages(w, v); err != nil {
			return err
		}
	}
	if len(v.Instances) > 0 {
		fmt.Fprintln(w)
		if err := printInstances(w, v); err != nil {
			return err
		}
	}
	if crowded(v) {
		fmt.Fprint(w, crowding)
	}
	facts := [][]string{{"", ""}}
	fact := func(name, format string, args ...any) {
		facts = append(facts, []string{name, fmt.Sprintf(format, args...)})
	}
	if v.Accuracy != nil {
		fact("accuracy", "%s", quantity.Accuracy(*v.Accuracy))
	}
	if v.Gap != nil {
		fact("bound", "%s", proof(v))
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
	if len(v.Short) > 0 {
		var more []string
		for _, name := range slices.Sorted(maps.Keys(v.Short)) {
			more = append(more, fmt.Sprintf("%d %s", v.Short[name], name))
		}
		fact("short", "%s more would carry all of it", strings.Join(more, ", "))
	}
	if d := v.Diagnosis; d != nil && d.Carried && v.Reach != nil {
		fact("room", "this fleet carries up to %s this demand, %s with %s head-room", quantity.Multiple(d.Multiple),
			quantity.Rate(*v.Reach), quantity.Percent(d.Headroom-1))
	}
	if len(facts) > 1 {
		fmt.Fprintln(w)
		if err := columns(w, "ll", facts[1:]); err != nil {
			return err
		}
	}
	return printDiagnosis(w, v)
}

// overFull is by how much a plan's utility may be above the fluid bound by rounding.
const overFull = 1.001

// beside says how far a plan is from what the machines have time for.
func beside(v *planning.Plan) string {
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

// proof says how good a plan is proven to be.
func proof(v *planning.Plan) string {
	unit := "the apps' mean accuracy, each relative to its best variant's"
	switch v.Goal {
	case "fairness":
		unit = "the apps' smallest accuracy, each relative to its best variant's"
	case "blend":
		unit = "a blend of the apps' mean and smallest accuracy"
	case "throughput":
		unit = "the multiple of the demand that is carried"
	}
	if v.Goal == planning.GoalCost {
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

// printStages writes budget, rate and machines of each stage.
func printStages(w io.Writer, v *planning.Plan) error {
	rows := [][]string{{"STAGE", "OF", "BUDGET", "RATE", "MACHINES", "$/h USED"}}
	for _, s := range v.Stages {
		budget := "-"
		if s.BudgetMS > 0 {
			budget = quantity.Number(s.BudgetMS) + " ms"
		}
		rows = append(rows, []string{
			s.Stage, s.App, budget, quantity.Rate(s.Rate), strconv.FormatFloat(s.Machines, 'f', 2, 64),
			quantity.Dollars(s.CostPerHour),
		})
	}
	return columns(w, "llrrrr", rows)
}

// printInstances writes the instances, those that are alike in one line.
func printInstances(w io.Writer, v *planning.Plan) error {
	type kind struct {
		device, app, stage, variant string
		limit, slots                int
	}
	type sum struct {
		planning.Instance
		workers []string
	}
	var kinds []kind
	sums := make(map[kind]*sum)
	staged := false
	for _, i := range v.Instances {
		k := kind{i.DeviceType, i.App, i.Stage, i.Variant, i.BatchLimit, i.Slots}
		s := sums[k]
		if s == nil {
			s = &sum{Instance: i}
			s.Share, s.Rate, s.Capacity = 0, 0, 0
			sums[k] = s
			kinds = append(kinds, k)
		}
		s.workers = append(s.workers, i.Worker)
		s.Share += i.Share
		s.Rate += i.Rate
		s.Capacity += i.Capacity
		staged = staged || i.Stage != i.App
	}
	rows := [][]string{
		{"DEVICE", "WORKERS", "", "APP", "STAGE", "VARIANT", "ACCURACY", "BATCH", "SHARE", "RATE", "CAPACITY", "BUSY"},
	}
	for _, k := range kinds {
		s := sums[k]
		variant, batch, stage, busy := s.Variant, strconv.Itoa(s.BatchLimit), "", "-"
		if n := len(s.Standby); n > 0 {
			variant += fmt.Sprintf(" (+%d)", n)
		}
		if s.Slots > 1 {
			batch = fmt.Sprintf("%d x %d", s.Slots, s.BatchLimit)
		}
		if staged {
			stage = s.Stage
		}
		if s.Capacity > 0 {
			busy = fmt.Sprintf("%.0f %%", 100*s.Rate/s.Capacity)
		}
		rows = append(rows, []string{s.DeviceType, strconv.Itoa(len(s.workers)), spans(s.workers), s.App, stage,
			variant, quantity.Accuracy(s.Accuracy), batch,
			strconv.FormatFloat(100*s.Share, 'f', 1, 64) + " %", quantity.Rate(s.Rate),
			quantity.Rate(s.Capacity), busy})
	}
	if len(v.Idle) > 0 {
		rows = append(rows, []string{
			"", strconv.Itoa(len(v.Idle)), spans(v.Idle), "(idle)", "", "", "", "", "", "", "", "",
		})
	}
	return columns(w, "lrllllrrrrrr", rows)
}

// crowding is said of plans with several instances on a worker.
const crowding = "\nWorkers host several instances each; the capacity of an instance is what it would carry with " +
	"its worker to itself.\n"

// crowded tells that some worker hosts more than one instance.
func crowded(v *planning.Plan) bool {
	seen := make(map[string]bool)
	for _, i := range v.Instances {
		if seen[i.Worker] {
			return true
		}
		seen[i.Worker] = true
	}
	return false
}

// printPlans writes a line for each plan.
func printPlans(w io.Writer, plans []planning.Plan) error {
	rows := [][]string{
		{
			"SYSTEM", "FLEET", "SCALE", "DEMAND", "SERVED", "SHED", "ACCURACY", "CAPACITY", "REACH", "$/h", "USED",
			"BOUND", "LOADS", "GAP",
		},
	}
	systems, fleets, costs := false, false, false
	for i := range plans {
		systems = systems || plans[i].System != plans[0].System
		fleets = fleets || plans[i].WhatIf != ""
	}
	var notes []string
	for i := range plans {
		v := &plans[i]
		row := make([]string, len(rows[0]))
		if systems {
			row[0] = v.System
		}
		if fleets {
			if row[1] = v.WhatIf; v.WhatIf == "" {
				row[1] = "as it is"
			}
		}
		if v.Scale > 0 {
			row[2] = quantity.Multiple(v.Scale)
		}
		row[3], row[4], row[5] = quantity.Rate(v.Demand), quantity.Rate(v.Served), "-"
		if v.Shed > 0 {
			row[5] = quantity.Rate(v.Shed)
		}
		row[6], row[7], row[8], row[13] = accuracyOr(v.Accuracy), quantity.Rate(v.Capacity), "-", "-"
		if v.Reach != nil {
			row[8] = quantity.Rate(*v.Reach)
		}
		row[9], row[12] = quantity.Dollars(v.CostPerHour), strconv.Itoa(v.Loads)
		if v.CostUsed != nil {
			row[10] = quantity.Dollars(*v.CostUsed)
		}
		if v.Goal == planning.GoalCost && v.Bound != nil {
			row[11] = quantity.Dollars(*v.Bound)
			costs = true
		}
		if v.Gap != nil {
			row[13] = quantity.Percent(*v.Gap)
		}
		if v.Error != "" {
			notes = append(notes, v.Error)
		}
		rows = append(rows, row)
	}
	if err := columns(w, "llrrrrrrrrrrrr", rows); err != nil {
		return err
	}
	last := ""
	for _, n := range notes {
		if n != last {
			fmt.Fprintf(w, "\nno plan: %s\n", n)
			last = n
		}
	}
	for i := range plans {
		if crowded(&plans[i]) {
			fmt.Fprint(w, crowding)
			break
		}
	}
	if costs {
		fmt.Fprintln(w,
			"\nUSED counts machines by the part that is used, BOUND is what no plan of the system rents less than.")
	}
	_, err := fmt.Fprintln(w, "\nCAPACITY is what the plan carries at its shares, REACH what the fleet could carry "+
		"of this mix whatever the accuracy.")
	return err
}

// spans writes names that are counted through as NAME-from..to, and no more than fit into a line.
func spans(names []string) string {
	const most = 3
	var out []string
	for i := 0; i < len(names); {
		to := i + 1
		head, first, ok := numbered(names[i])
		for to < len(names) && ok {
			h, n, also := numbered(names[to])
			if !also || h != head || n != first+to-i {
				break
			}
			to++
		}
		if len(out) == most {
			out = append(out, "...")
			break
		}
		if to-i > 1 {
			out = append(out, fmt.Sprintf("%s-%d..%d", head, first, first+to-i-1))
		} else {
			out = append(out, names[i])
		}
		i = to
	}
	return strings.Join(out, ", ")
}

// numbered takes NAME-3 apart.
func numbered(name string) (head string, n int, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return name, 0, false
	}
	n, err := strconv.Atoi(name[at+1:])
	return name[:at], n, err == nil && n >= 0
}

func accuracyOr(x *float64) string {
	if x == nil {
		return "-"
	}
	return quantity.Accuracy(*x)
}
