package dispatcher

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"strconv"
)

// gatherer has the replica's own series and those of the cells that it serves, with the label cell.
func (d *Dispatcher) gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all := prometheus.Gatherers{d.metrics}
		for n, run := range d.runs.Runs() {
			all = append(all, ofCell{run.Server.Metrics(), strconv.Itoa(n)})
		}
		return all.Gather()
	})
}

// ofCell adds the label cell to all series. Those of the process are left out: the replica has its own.
type ofCell struct {
	from prometheus.Gatherer
	cell string
}

// Gather implements prometheus.Gatherer.
func (g ofCell) Gather() ([]*dto.MetricFamily, error) {
	list, err := g.from.Gather()
	out := list[:0]
	name := "cell"
	for _, f := range list {
		if n := f.GetName(); strings.HasPrefix(n, "go_") || strings.HasPrefix(n, "process_") {
			continue
		}
		for _, m := range f.Metric {
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &g.cell})
		}
		out = append(out, f)
	}
	return out, err
}
