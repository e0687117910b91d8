package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
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
	if err := printApps(w, v); err != nil {
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
	if sharesWorkers(v) {
		fmt.Fprint(w, sharedWorkersNote)
	}
	if facts := v.Facts(); len(facts) > 0 {
		rows := make([][]string, len(facts))
		for k, f := range facts {
			rows[k] = []string{f.Name, f.Text}
		}
		fmt.Fprintln(w)
		if err := columns(w, "ll", rows); err != nil {
			return err
		}
	}
	if err := printTrials(w, v); err != nil {
		return err
	}
	return printDiagnosis(w, v)
}

// printApps writes the rates and the accuracy of each app.
func printApps(w io.Writer, v *planning.Plan) error {
	rows := [][]string{{"APP", "DEMAND", "SERVED", "SHED", "CAPACITY", "ACCURACY", "SLO"}}
	format := "lrrrrrr"
	if v.Forecast != nil {
		rows[0], format = append(rows[0], "LATE"), format+"r"
	}
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
		if a.Violation != nil {
			last := len(rows) - 1
			rows[last] = append(rows[last], quantity.Percent(*a.Violation))
		}
	}
	return columns(w, format, rows)
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

// sharedWorkersNote is printed for plans with several instances on a worker.
const sharedWorkersNote = "\nWorkers host several instances each; the capacity of an instance is what it would carry " +
	"with its worker to itself.\n"

// sharesWorkers reports whether some worker hosts more than one instance.
func sharesWorkers(v *planning.Plan) bool {
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
	systems, fleets, costs, shared := false, false, false, false
	for i := range plans {
		v := &plans[i]
		systems = systems || v.System != plans[0].System
		fleets = fleets || v.WhatIf != ""
		costs = costs || boundsCost(v)
		shared = shared || sharesWorkers(v)
	}
	for i := range plans {
		row := planRow(&plans[i])
		if !systems {
			row[0] = ""
		}
		if !fleets {
			row[1] = ""
		}
		rows = append(rows, row)
	}
	if err := columns(w, "llrrrrrrrrrrrr", rows); err != nil {
		return err
	}
	last := ""
	for i := range plans {
		if e := plans[i].Error; e != "" && e != last {
			fmt.Fprintf(w, "\nno plan: %s\n", e)
			last = e
		}
	}
	if shared {
		fmt.Fprint(w, sharedWorkersNote)
	}
	if costs {
		fmt.Fprintln(w,
			"\nUSED counts machines by the part that is used, BOUND is what no plan of the system rents less than.")
	}
	_, err := fmt.Fprintln(w, "\nCAPACITY is what the plan carries at its shares, REACH what the fleet could carry "+
		"of this mix whatever the accuracy.")
	return err
}

// boundsCost reports whether a plan has a bound on its cost.
func boundsCost(v *planning.Plan) bool { return v.Goal == planning.GoalCost && v.Bound != nil }

// planRow returns the line of a plan in the table of printPlans. Cells without a value are empty, or "-" where other
// plans may have one.
func planRow(v *planning.Plan) []string {
	fleet, scale, shed, reach, used, bound, gap := v.WhatIf, "", "-", "-", "", "", "-"
	if fleet == "" {
		fleet = "as it is"
	}
	if v.Scale > 0 {
		scale = quantity.Multiple(v.Scale)
	}
	if v.Shed > 0 {
		shed = quantity.Rate(v.Shed)
	}
	if v.Reach != nil {
		reach = quantity.Rate(*v.Reach)
	}
	if v.CostUsed != nil {
		used = quantity.Dollars(*v.CostUsed)
	}
	if boundsCost(v) {
		bound = quantity.Dollars(*v.Bound)
	}
	if v.Gap != nil {
		gap = quantity.Percent(*v.Gap)
	}
	return []string{
		v.System, fleet, scale, quantity.Rate(v.Demand), quantity.Rate(v.Served), shed, accuracyOr(v.Accuracy),
		quantity.Rate(v.Capacity), reach, quantity.Dollars(v.CostPerHour), used, bound, strconv.Itoa(v.Loads), gap,
	}
}

// spans returns a list of names in which consecutive numbers are shortened to NAME-from..to. It is cut to fit a line.
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

// numbered splits NAME-3 into NAME and 3.
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
