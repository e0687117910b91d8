// Package dashboard makes the Grafana dashboard of the series that docs/metrics.md defines: what an operator looks at
// first, and then a panel for every series, with its definition.
package dashboard

import (
	"fmt"
	"regexp"
	"strings"
)

// Series is one time series of the table in docs/metrics.md.
type Series struct {
	Name    string
	Labels  []string
	Meaning string
}

// Kind says how a series is drawn.
func (s *Series) Kind() string {
	switch {
	case strings.HasPrefix(s.Meaning, "histogram"):
		return "histogram"
	case strings.HasSuffix(s.Name, "_total"), strings.HasSuffix(s.Name, "_sum"), strings.HasSuffix(s.Name, "_count"):
		return "counter"
	}
	return "gauge"
}

var (
	named = regexp.MustCompile("`(sluice_[a-z_]+)`")
	links = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// Parse reads the table below the heading Prometheus. Series of other names are there for readers of Triton's, which
// have dashboards of their own.
func Parse(page string) ([]Series, error) {
	_, text, ok := strings.Cut(page, "\n## Prometheus\n")
	if !ok {
		return nil, fmt.Errorf("dashboard: the page has no section Prometheus")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var out []Series
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 {
			continue
		}
		var labels []string
		for _, l := range strings.Split(cells[1], ",") {
			if l = strings.TrimSpace(l); l != "" {
				labels = append(labels, l)
			}
		}
		meaning := strings.ReplaceAll(links.ReplaceAllString(strings.TrimSpace(cells[2]), "$1"), "`", "")
		for _, m := range named.FindAllStringSubmatch(cells[0], -1) {
			out = append(out, Series{m[1], labels, meaning})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("dashboard: the section Prometheus has no table of series")
	}
	return out, nil
}
