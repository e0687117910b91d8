package cli

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// print writes a report for a terminal: one plan in full, several with a line each.
func (p *planning) print(w io.Writer, r *planReport) error {
	if len(r.Frontiers) > 0 {
		return printFrontiers(w, r)
	}
	if p.one() {
		return printPlan(w, &r.Plans[0])
	}
	return printPlans(w, r.Plans)
}

// printPlan writes one plan in full.
func printPlan(w io.Writer, v *planView) error {
	head := fmt.Sprintf("system %s, planner %s, ", v.System, v.Planner)
	if v.Demand > 0 {
		head += "demand " + rateText(v.Demand)
	} else {
		head += "no demand given: the plan of an idle start"
	}
	fmt.Fprintf(w, "%s\n\n", head)
	rows := [][]string{{"APP", "DEMAND", "SERVED", "SHED", "CAPACITY", "ACCURACY", "SLO"}}
	for _, a := range v.Apps {
		shed := "-"
		if a.Shed > 0 {
			shed = rateText(a.Shed)
		}
		rows = append(rows, []string{
			a.Name, rateText(a.Demand), rateText(a.Served), shed, rateText(a.Capacity), accuracyOr(a.Accuracy),
			number(a.SLOMS) + " ms",
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
	if v.crowded() {
		fmt.Fprint(w, crowding)
	}
	facts := [][]string{{"", ""}}
	fact := func(name, format string, args ...any) {
		facts = append(facts, []string{name, fmt.Sprintf(format, args...)})
	}
	if v.Accuracy != nil {
		fact("accuracy", "%s", accuracyText(*v.Accuracy))
	}
	if v.Gap != nil {
		fact("bound", "%s", proof(v))
	}
	used := v.Workers - len(v.Idle)
	if v.Error == "" {
		cost := money(v.CostPerHour) + " $/h"
		if v.CostUsed != nil {
			cost += fmt.Sprintf(" rented and %s $/h used", money(*v.CostUsed))
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
		fact("room", "this fleet carries up to %s this demand, %s with %s head-room", multipleText(d.Multiple),
			rateText(*v.Reach), percent(d.Headroom-1))
	}
	if len(facts) > 1 {
		fmt.Fprintln(w)
		if err := columns(w, "ll", facts[1:]); err != nil {
			return err
		}
	}
	return printDiagnosis(w, v)
}

// proof says how good a plan is proven to be.
func proof(v *planView) string {
	unit := "the apps' mean accuracy, each relative to its best variant's"
	switch v.Goal {
	case "fairness":
		unit = "the apps' smallest accuracy, each relative to its best variant's"
	case "blend":
		unit = "a blend of the apps' mean and smallest accuracy"
	case "throughput":
		unit = "the multiple of the demand that is carried"
	}
	if v.Goal == goalCost {
		if *v.Gap < 5e-5 {
			return money(*v.Bound) + " $/h, which is reached: no plan rents less"
		}
		return fmt.Sprintf("%s $/h, which no plan rents less than; this one is %s above", money(*v.Bound),
			percent(*v.Gap))
	}
	if *v.Gap < 5e-5 {
		return fmt.Sprintf("%.4f for %s, which is reached", *v.Bound, unit)
	}
	return fmt.Sprintf("%.4f for %s; the plan is %s below", *v.Bound, unit, percent(*v.Gap))
}

// printStages writes what each stage of a graph gets.
func printStages(w io.Writer, v *planView) error {
	rows := [][]string{{"STAGE", "OF", "BUDGET", "RATE", "MACHINES", "$/h USED"}}
	for _, s := range v.Stages {
		budget := "-"
		if s.BudgetMS > 0 {
			budget = number(s.BudgetMS) + " ms"
		}
		rows = append(rows, []string{
			s.Stage, s.App, budget, rateText(s.Rate), strconv.FormatFloat(s.Machines, 'f', 2, 64), money(s.CostPerHour),
		})
	}
	return columns(w, "llrrrr", rows)
}

// printInstances writes what runs, instances that are alike in one line.
func printInstances(w io.Writer, v *planView) error {
	type kind struct {
		device, app, stage, variant string
		limit, slots                int
	}
	type sum struct {
		instanceView
		workers []string
	}
	var kinds []kind
	sums := make(map[kind]*sum)
	staged := false
	for _, i := range v.Instances {
		k := kind{i.DeviceType, i.App, i.Stage, i.Variant, i.BatchLimit, i.Slots}
		s := sums[k]
		if s == nil {
			s = &sum{instanceView: i}
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
			variant, accuracyText(s.Accuracy), batch,
			strconv.FormatFloat(100*s.Share, 'f', 1, 64) + " %", rateText(s.Rate), rateText(s.Capacity), busy})
	}
	if len(v.Idle) > 0 {
		rows = append(rows, []string{
			"", strconv.Itoa(len(v.Idle)), spans(v.Idle), "(idle)", "", "", "", "", "", "", "", "",
		})
	}
	return columns(w, "lrllllrrrrrr", rows)
}

// shown is how many bottlenecks are told of: those that matter least matter little.
const shown = 4

// printDiagnosis writes what a plan that lacks something lacks, and the mends.
func printDiagnosis(w io.Writer, v *planView) error {
	d := v.Diagnosis
	if d == nil || !v.lacks() && d.Carried {
		return nil
	}
	b := &strings.Builder{}
	by := ""
	if v.Adviser != "" {
		by = fmt.Sprintf(", with planner %s, which may put any variant on any worker,", v.Adviser)
	}
	head := percent(d.Headroom - 1)
	switch {
	case d.Carried:
		fmt.Fprintf(b, "The fleet%s would carry this demand up to %s; system %s does not.\n", by,
			multipleText(d.Multiple), v.System)
	case len(d.Unserved) > 0:
		fmt.Fprintf(b, "This demand cannot be carried%s: there are apps that nothing serves.\n",
			strings.TrimSuffix(by, ","))
	case !v.lacks():
		fmt.Fprintf(b,
			"This demand is carried, but not with the head-room of %s that is planned for: with it, %s can be.\n", head,
			multipleText(d.Multiple))
	default:
		fmt.Fprintf(b,
			"This demand cannot be carried: the fleet%s carries %s of it at most, if every app is to get the same "+
				"part, with %s head-room.\n", by, multipleText(d.Multiple), head)
	}
	if !d.Carried && d.Bound > d.Multiple*1.005 {
		fmt.Fprintf(b, "(More than %s is ruled out; between the two the search gave up.)\n", multipleText(d.Bound))
	}
	list := func(title string, n int, text func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(b, "\n%s\n", title)
		for i := range n {
			fmt.Fprintf(b, "  %s\n", text(i))
		}
	}
	list("What nothing serves:", len(d.Unserved), func(i int) string { return d.Unserved[i].Text })
	if len(d.Unserved) == 0 {
		list("What keeps it from being carried:", min(len(d.Bottlenecks), shown), func(i int) string {
			return d.Bottlenecks[i].Text
		})
		if n := len(d.Bottlenecks) - shown; n > 0 {
			fmt.Fprintf(b, "  and %d more apps, less so\n", n)
		}
	}
	mends, demands := d.Mends, 0
	mends = slices.DeleteFunc(slices.Clone(mends), func(m mendView) bool {
		if m.Kind == "demand" {
			demands++
		}
		return demands > shown
	})
	title := "Any one of these would mend it:"
	if len(mends) == 1 {
		title = "This would mend it:"
	}
	list(title, len(mends), func(i int) string { return mends[i].Text })
	if !d.Carried && len(d.Mends) == 0 {
		fmt.Fprint(b,
			"\nNo change of one kind mends it: not more workers, lower floors, longer SLOs or less demand of one "+
				"app.\n")
	}
	_, err := fmt.Fprintf(w, "\n%s", b)
	return err
}

// crowding is said of plans with several instances on a worker.
const crowding = "\nWorkers host several instances each; the capacity of an instance is what it would carry with " +
	"its worker to itself.\n"

// crowded tells that some worker hosts more than one instance.
func (v *planView) crowded() bool {
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
func printPlans(w io.Writer, plans []planView) error {
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
			row[2] = multipleText(v.Scale)
		}
		row[3], row[4], row[5] = rateText(v.Demand), rateText(v.Served), "-"
		if v.Shed > 0 {
			row[5] = rateText(v.Shed)
		}
		row[6], row[7], row[8], row[13] = accuracyOr(v.Accuracy), rateText(v.Capacity), "-", "-"
		if v.Reach != nil {
			row[8] = rateText(*v.Reach)
		}
		row[9], row[12] = money(v.CostPerHour), strconv.Itoa(v.Loads)
		if v.CostUsed != nil {
			row[10] = money(*v.CostUsed)
		}
		if v.Goal == goalCost && v.Bound != nil {
			row[11] = money(*v.Bound)
			costs = true
		}
		if v.Gap != nil {
			row[13] = percent(*v.Gap)
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
		if plans[i].crowded() {
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

func accuracyText(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) + " %" }

func accuracyOr(x *float64) string {
	if x == nil {
		return "-"
	}
	return accuracyText(*x)
}

// percent writes a fraction with one digit, or two where it is small, and without those that say nothing.
func percent(x float64) string {
	digits := 1
	if math.Abs(x) < 0.01 {
		digits = 2
	}
	s := strconv.FormatFloat(100*x, 'f', digits, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " %"
}

func multipleText(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + " x" }

func rateText(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "-"
	}
	return number(x) + " /s"
}

// number writes three digits, or all of those before the point.
func number(x float64) string {
	digits := 0
	for p := 100.0; x != 0 && math.Abs(x) < p && digits < 3; p /= 10 {
		digits++
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if digits > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, rest, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + rest
	}
	return whole
}

func money(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
