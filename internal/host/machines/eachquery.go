package machines

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/serving"
)

// CalledForEachQuery lists the variants in Python that are called for each query, without those whose model does not
// say what it takes.
func (b *Backends) CalledForEachQuery(ctx context.Context) (out []string) {
	ctx, done := context.WithTimeout(ctx, pythonTimeout)
	defer done()
	for v, x := range b.Fleet.Tables.Spec.Variants {
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

// CheckEachQuery returns an error for a stage behind others whose model is called for each query, of which the plans do
// not know, or of whose variants not all are: a model would be called for a part of a query, or for rows that are not
// its items.
func (b *Backends) CheckEachQuery(ctx context.Context) error {
	f := b.Fleet
	ctx, done := context.WithTimeout(ctx, b.Timeout())
	defer done()
	spec := f.Tables.Spec
	for s := range spec.Stages {
		st := &spec.Stages[s]
		python := func(v serving.VariantID) bool { return f.Tables.Variants[v].Python != nil }
		if serving.StageID(s) == spec.Source(st.App) || !slices.ContainsFunc(st.Variants, python) {
			continue
		}
		var are, others []string
		for _, v := range st.Variants {
			name := spec.Variants[v].Name
			p := b.inPython(v)
			if p == nil {
				others = append(others, name)
			} else if i, err := p.Interface(ctx, v); err == nil && i.EachQuery {
				are = append(are, name)
			} else if err == nil { // why it cannot be loaded is said elsewhere
				others = append(others, name)
			}
		}
		where := fmt.Sprintf("stage %q of app %q", st.Name, spec.Apps[st.App].Name)
		switch {
		case len(are) == 0:
		case len(others) > 0:
			return fault.Errorf(fault.Config, "%s: the class of variant %q has each_query, variant %q has not: behind "+
				"other stages one is called for whole queries and the other for items, so that they cannot stand in "+
				"for each other", where, are[0], others[0])
		case !st.EachQuery:
			return fault.Errorf(fault.Config, "%s: the class of variant %q has each_query, which its profile does not "+
				"say, so that queries would be counted wrongly: measure it anew (`sluice profile -f %s`, or remove %s "+
				"beside that file)", where, are[0], f.File.Name(), MeasuredProfile)
		}
	}
	return nil
}
