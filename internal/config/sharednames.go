package config

import (
	"maps"

	"github.com/sluice-serving/sluice/serving"
)

// sharedNames reports variants of several apps that have one name and are not the same model. Profiles know variants by
// their names: those of one name share their latencies.
func (r *resolver) sharedNames() {
	first := make(map[string]serving.VariantID)
	for v := range r.w.Spec.Variants {
		name := r.w.Spec.Variants[v].Name
		id, ok := first[name]
		if !ok {
			first[name] = serving.VariantID(v)
			continue
		}
		a, b := &r.w.Variants[id], &r.w.Variants[v]
		if a.App != b.App && !a.same(b) {
			r.c.addf(at("apps", int(b.App)), "variant %q is another model than the variant of that name of app %q: "+
				"profiles tell variants apart by their names, so give one of them another", name,
				r.w.Spec.Apps[a.App].Name)
		}
	}
}

// same reports whether two variants run the same.
func (b *Binding) same(other *Binding) bool {
	if (b.Function == nil) != (other.Function == nil) {
		return false
	}
	if b.Function != nil {
		return b.Function.Name() == other.Function.Name() && maps.Equal(b.With, other.With)
	}
	return b.Model == other.Model && b.Version == other.Version && b.Path == other.Path
}
