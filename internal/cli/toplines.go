package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

// topLine is a line of the screen.
type topLine struct {
	text string
	kind lineKind
}

// lineKind says how a line is to look.
type lineKind int

const (
	plainLine lineKind = iota
	headLine
	badLine
	dimLine
)

// absent stands for a number that does not exist.
const absent = "-"

func shownShare(x *float64) string {
	if x == nil {
		return absent
	}
	return fmt.Sprintf("%.2f %%", 100**x)
}

func shownMS(x *float64) string {
	if x == nil {
		return absent
	}
	return fmt.Sprintf("%.1f ms", *x)
}

// topColumn is a column of the apps.
type topColumn struct {
	title string
	width int  // in characters
	wide  bool // left out on narrow screens
	of    func(a *board.AppNow) string
}

// topColumns are the numbers of an app.
var topColumns = []topColumn{
	{"OFFERED", 9, false, func(a *board.AppNow) string { return fmt.Sprintf("%.1f/s", a.Now.Rate) }},
	{"VIOLATE", 9, false, func(a *board.AppNow) string { return shownShare(a.Now.Violation) }},
	{"LAST HOUR", 10, true, func(a *board.AppNow) string { return shownShare(a.Hour.Violation) }},
	{"P99", 10, false, func(a *board.AppNow) string { return shownMS(a.Now.P99) }},
	{"OBJECTIVE", 10, false, func(a *board.AppNow) string { return shownMS(&a.ObjectiveMS) }},
	{"ACCURACY", 10, false, func(a *board.AppNow) string { return shownShare(a.Now.Accuracy) }},
	{"CAPACITY", 9, true, func(a *board.AppNow) string {
		if a.Forecast == nil || a.Forecast.Capacity == nil {
			return absent
		}
		return fmt.Sprintf("%.0f/s", *a.Forecast.Capacity)
	}},
}

// wideScreen is from how many characters on a screen has all columns. Without the wide ones they fit into 80.
const wideScreen = 115

// apps are the lines about the whole and about every app, for a screen of so many characters.
func (t *top) apps(width int) []topLine {
	o := &t.overview
	wide, named := width >= wideScreen, 16
	whole := fmt.Sprintf("%.0f/s, violations %s, accuracy %s, $%.2f/h, %d of %d machines", o.Now.Rate,
		shownShare(o.Now.Violation), shownShare(o.Now.Accuracy), o.CostPerHour, o.WorkersUsed, o.Workers)
	if wide {
		named = 20
		cost := fmt.Sprintf("$%.2f/h", o.CostPerHour)
		if o.CostPerMillion != nil {
			cost += fmt.Sprintf(", $%.2f a million", *o.CostPerMillion)
		}
		whole = fmt.Sprintf("%.0f/s offered, %.0f/s served, violations %s, accuracy %s, %s, %d of %d machines, %s busy",
			o.Now.Rate, o.Now.Throughput, shownShare(o.Now.Violation), shownShare(o.Now.Accuracy), cost, o.WorkersUsed,
			o.Workers, shownShare(o.Utilisation))
	}
	row := func(name, state string, of func(*topColumn) string) string {
		text := fmt.Sprintf("%-*.*s %-7s", named, named, name, state)
		for k := range topColumns {
			if c := &topColumns[k]; wide || !c.wide {
				text += fmt.Sprintf(" %*s", c.width, of(c))
			}
		}
		return text
	}
	out := []topLine{
		{text: whole, kind: headLine},
		{text: row("APP", "", func(c *topColumn) string { return c.title }), kind: headLine},
	}
	for k := range o.Apps {
		a := &o.Apps[k]
		if a.Closed {
			continue
		}
		state, kind := "kept", plainLine
		switch {
		case a.Now.Violation == nil:
			state, kind = "no load", dimLine
		case a.Burn != nil && *a.Burn > 1:
			state, kind = "MISSED", badLine
		}
		out = append(out, topLine{kind: kind, text: row(a.Name, state, func(c *topColumn) string { return c.of(a) })})
	}
	return out
}

// barWidth is how many characters show a machine's use.
const barWidth = 12

// workers are the lines about the machines, the busiest first.
func (t *top) workers() []topLine {
	m := &t.machines
	out := []topLine{
		{text: fmt.Sprintf("%d machines of %d kinds", len(m.Workers), len(m.Kinds)), kind: headLine},
		{text: fmt.Sprintf("%-16s %-10s %-*s %6s  %s", "MACHINE", "KIND", barWidth, "", "BUSY",
			"HOLDS (*: runs, ~: loads)"), kind: headLine},
	}
	states := slices.Clone(m.States)
	slices.SortStableFunc(states, func(a, b board.WorkerNow) int {
		switch {
		case a.Busy > b.Busy:
			return -1
		case a.Busy < b.Busy:
			return 1
		}
		return a.Worker - b.Worker
	})
	for k := range states {
		s := &states[k]
		w := &m.Workers[s.Worker]
		n := min(barWidth, int(s.Busy*barWidth+0.5))
		bar := strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
		kind := plainLine
		if len(s.Instances) == 0 {
			kind = dimLine
		}
		out = append(out, topLine{kind: kind, text: fmt.Sprintf("%-16.16s %-10.10s %s %4.0f %%  %s", w.Name,
			m.Kinds[w.Kind].Name, bar, 100*s.Busy, t.holds(s))})
	}
	return out
}

// holds lists what a machine holds.
func (t *top) holds(s *board.WorkerNow) string {
	if len(s.Instances) == 0 {
		return "nothing"
	}
	var out []string
	for k := range s.Instances {
		i := &s.Instances[k]
		var names []string
		for _, v := range i.Variants {
			name := t.machines.Variants[v.Variant]
			if v.Loading {
				name = "~" + name
			}
			if slices.ContainsFunc(i.Running, func(b board.BatchNow) bool { return b.Variant == v.Variant }) {
				name = "*" + name
			}
			names = append(names, name)
		}
		out = append(out, t.machines.Stages[i.Stage].App+": "+strings.Join(names, " "))
	}
	return strings.Join(out, ", ")
}
