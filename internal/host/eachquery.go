package host

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// eachQuery returns a copy in which stages whose models in Python are called for each query are so, as a profile says:
// simulations count as servers do.
func (o *Opened) eachQuery(f *profiler.File) *Opened {
	if len(f.EachQuery) == 0 {
		return o
	}
	out, tables, spec := *o, *o.tables, *o.tables.Spec
	spec.Stages = slices.Clone(spec.Stages)
	for v := range spec.Variants {
		if o.tables.Variants[v].Python != nil && slices.Contains(f.EachQuery, spec.Variants[v].Name) {
			spec.Stages[spec.Variants[v].Stage].EachQuery = true
		}
	}
	tables.Spec = &spec
	out.tables = &tables
	return &out
}
