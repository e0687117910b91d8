package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Grafana's names.
type (
	board struct {
		UID           string     `json:"uid"`
		Title         string     `json:"title"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Refresh       string     `json:"refresh"`
		Time          span       `json:"time"`
		Templating    templating `json:"templating"`
		Panels        []panel    `json:"panels"`
	}
	span struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string `json:"name"`
		Type       string `json:"type"`
		Query      string `json:"query"`
		Datasource *ref   `json:"datasource,omitempty"`
		IncludeAll bool   `json:"includeAll,omitempty"`
		Multi      bool   `json:"multi,omitempty"`
		AllValue   string `json:"allValue,omitempty"`
		Refresh    int    `json:"refresh,omitempty"`
	}
	ref struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	panel struct {
		ID          int          `json:"id"`
		Type        string       `json:"type"`
		Title       string       `json:"title"`
		Description string       `json:"description,omitempty"`
		Datasource  *ref         `json:"datasource,omitempty"`
		GridPos     grid         `json:"gridPos"`
		FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
		Targets     []target     `json:"targets,omitempty"`
	}
	grid struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	}
	fieldConfig struct {
		Defaults defaults `json:"defaults"`
	}
	defaults struct {
		Unit string `json:"unit,omitempty"`
		Min  *int   `json:"min,omitempty"`
	}
	target struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat,omitempty"`
	}
)

var prometheus = &ref{"prometheus", "${datasource}"}

// first are the panels that come before all others: is every app's objective kept, at which rate and with which
// accuracy, and what keeps it from that.
var first = []struct {
	title, unit, description string
	series                   []string // that it needs; without them it is left out
	exprs                    []target
}{
	{"Queries", "reqps", "Queries that ended, by app.", []string{"sluice_queries_total"}, []target{
		{Expr: `sum by (app) (rate(sluice_queries_total{app=~"$app"}[$__rate_interval]))`, LegendFormat: "{{app}}"}}},
	{"Violations of the objective", "percentunit", "Share of queries that were late, dropped, refused or failed.",
		[]string{"sluice_slo_good_total", "sluice_slo_total"}, []target{
			{Expr: `1 - sum by (app) (rate(sluice_slo_good_total{app=~"$app"}[$__rate_interval])) / ` +
				`sum by (app) (rate(sluice_slo_total{app=~"$app"}[$__rate_interval]))`, LegendFormat: "{{app}}"}}},
	{"Latency", "s", "Of answered queries: median and 99th percentile.", []string{"sluice_query_latency_seconds"},
		[]target{
			{Expr: quantile(0.5, "sluice_query_latency_seconds"), LegendFormat: "{{app}} p50"},
			{Expr: quantile(0.99, "sluice_query_latency_seconds"), LegendFormat: "{{app}} p99"}}},
	{"Accuracy of answers", "percentunit", "Effective accuracy.",
		[]string{"sluice_accuracy_sum", "sluice_accuracy_count"},
		[]target{{Expr: `sum by (app) (rate(sluice_accuracy_sum{app=~"$app"}[$__rate_interval])) / ` +
			`sum by (app) (rate(sluice_accuracy_count{app=~"$app"}[$__rate_interval]))`, LegendFormat: "{{app}}"}}},
	{"Queries under way", "short", "Accepted and not ended.", []string{"sluice_pending_queries"}, []target{
		{Expr: `sum by (app) (sluice_pending_queries{app=~"$app"})`, LegendFormat: "{{app}}"}}},
	{"Instances", "short", "By state.", []string{"sluice_instances"}, []target{
		{Expr: `sum by (app, state) (sluice_instances{app=~"$app"})`, LegendFormat: "{{app}} {{state}}"}}},
}

func quantile(q float64, series string) string {
	return fmt.Sprintf(`histogram_quantile(%v, sum by (le, app) (rate(%s_bucket{app=~"$app"}[$__rate_interval])))`, q,
		series)
}

// Make writes the dashboard as JSON. Equal series give equal bytes.
func Make(series []Series) ([]byte, error) {
	b := board{UID: "sluice", Title: "sluice", Tags: []string{"sluice"}, SchemaVersion: 39, Refresh: "10s",
		Time: span{"now-1h", "now"}, Templating: templating{[]variable{
			{Name: "datasource", Type: "datasource", Query: "prometheus"},
			{Name: "app", Type: "query", Query: "label_values(sluice_queries_total, app)", Datasource: prometheus,
				IncludeAll: true, Multi: true, AllValue: ".*", Refresh: 2},
		}}}
	known := map[string]bool{}
	for _, s := range series {
		known[s.Name] = true
	}
	add := func(title, unit, description string, targets []target) {
		n, zero := len(b.Panels), 0
		for i := range targets {
			targets[i].RefID = string(rune('A' + i))
		}
		b.Panels = append(b.Panels, panel{ID: n + 1, Type: "timeseries", Title: title, Description: description,
			Datasource: prometheus, GridPos: grid{n % 3 * 8, n / 3 * 8, 8, 8},
			FieldConfig: &fieldConfig{defaults{unit, &zero}}, Targets: targets})
	}
	for _, f := range first {
		for _, s := range f.series {
			if !known[s] {
				return nil, fmt.Errorf("dashboard: panel %q reads %s, which docs/metrics.md does not define",
					f.title, s)
			}
		}
		add(f.title, f.unit, f.description, append([]target{}, f.exprs...))
	}
	for i := range series {
		s := &series[i]
		unit, targets := s.drawn()
		add(s.Name, unit, s.Meaning, targets)
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}

// drawn returns the unit and the expressions of a series' own panel.
func (s *Series) drawn() (string, []target) {
	by, legend, filter := "", "", ""
	for _, l := range s.Labels {
		if l == "app" {
			filter = `{app=~"$app"}`
		}
		legend += " {{" + l + "}}"
	}
	if len(s.Labels) > 0 {
		by = " by (" + strings.Join(s.Labels, ", ") + ")"
	}
	legend = strings.TrimSpace(legend)
	unit := "short"
	if strings.Contains(s.Name, "_seconds") {
		unit = "s"
	}
	switch s.Kind() {
	case "histogram":
		byLe := " by (" + strings.Join(append([]string{"le"}, s.Labels...), ", ") + ")"
		return unit, []target{{Expr: fmt.Sprintf(
			"histogram_quantile(0.99, sum%s (rate(%s_bucket%s[$__rate_interval])))", byLe,
			s.Name, filter), LegendFormat: strings.TrimSpace(legend + " p99")}}
	case "counter":
		if unit == "short" {
			unit = "cps"
		}
		return unit, []target{{Expr: fmt.Sprintf("sum%s (rate(%s%s[$__rate_interval]))", by, s.Name, filter),
			LegendFormat: legend}}
	}
	return unit, []target{{Expr: fmt.Sprintf("sum%s (%s%s)", by, s.Name, filter), LegendFormat: legend}}
}
