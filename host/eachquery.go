package host

import (
	"context"
	"slices"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
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

// calledForEachQuery lists the variants in Python that are called for each query, without those whose model does not
// say what it takes.
func (b *backends) calledForEachQuery(ctx context.Context) (out []string) {
	ctx, done := context.WithTimeout(ctx, pythonTimeout)
	defer done()
	for v, x := range b.opened.Spec().Variants {
		p := b.inPython(serving.VariantID(v))
		if p == nil {
			continue
		}
		if i, err := p.Interface(ctx, serving.VariantID(v)); err == nil && i.EachQuery {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkEachQuery returns an error for a stage behind others whose model is called for each query, of which the plans do
// not know: it would be called for a part of a query.
func (o *Opened) checkEachQuery(ctx context.Context, b *backends) error {
	spec := o.Spec()
	behind := func(v serving.VariantID) bool {
		s := spec.Variants[v].Stage
		return s != spec.Source(spec.Stages[s].App) && !spec.Stages[s].EachQuery
	}
	if !slices.ContainsFunc(o.tables.Variants, func(x config.Binding) bool { return x.Python != nil }) {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, b.timeout())
	defer done()
	for v := range o.tables.Variants {
		id := serving.VariantID(v)
		p := b.inPython(id)
		if p == nil || !behind(id) {
			continue
		}
		i, err := p.Interface(ctx, id)
		if err != nil || !i.EachQuery { // why it cannot be loaded is said elsewhere
			continue
		}
		st := &spec.Stages[spec.Variants[id].Stage]
		return fault.Errorf(fault.Config, "stage %q of app %q: the class of variant %q has each_query, which its "+
			"profile does not say, so that queries would be counted wrongly: measure it anew (`sluice profile -f %s`, "+
			"or remove %s beside that file)", st.Name, spec.Apps[st.App].Name, spec.Variants[id].Name, o.Name(), MeasuredProfile)
	}
	return nil
}
