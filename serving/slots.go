package serving

import "slices"

// Free lists what nothing refers to any more: closed apps, with all that is theirs, and retired variants of apps that
// are open. What a spec grows by takes their places in the tables. An engine says what is free (engine.Engine.Free).
type Free struct {
	Apps     []AppID
	Variants []VariantID
}

// Placed translates identifiers of a spec that was added to another into those of the other.
type Placed struct {
	Apps     []AppID
	Stages   []StageID
	Variants []VariantID
}

// Fresh lists, ascending, the identifiers of a grown spec that have another meaning than before, or had none.
type Fresh struct {
	Apps     []AppID
	Stages   []StageID
	Variants []VariantID
}

// FreshSince compares s with the spec that it has grown out of.
func (s *Spec) FreshSince(old *Spec) (f Fresh) {
	for a := range s.Apps {
		if a >= len(old.Apps) || s.Apps[a].Generation != old.Apps[a].Generation {
			f.Apps = append(f.Apps, AppID(a))
		}
	}
	for i := range s.Stages {
		if i >= len(old.Stages) || s.Stages[i].Generation != old.Stages[i].Generation {
			f.Stages = append(f.Stages, StageID(i))
		}
	}
	for v := range s.Variants {
		if v >= len(old.Variants) || s.Variants[v].Generation != old.Variants[v].Generation {
			f.Variants = append(f.Variants, VariantID(v))
		}
	}
	return f
}

// Within reports whether a place of the spec before is among them: else it has grown at its end only.
func (f *Fresh) Within(old *Spec) bool {
	return len(f.Apps) > 0 && int(f.Apps[0]) < len(old.Apps) ||
		len(f.Stages) > 0 && int(f.Stages[0]) < len(old.Stages) ||
		len(f.Variants) > 0 && int(f.Variants[0]) < len(old.Variants)
}

// Renew sets a table's entries of fresh identifiers: those within it, and those by which it has grown, so that it
// becomes as long as the spec's.
func Renew[T any, I ~int32](table []T, fresh []I, entry func(I) T) []T {
	for _, id := range fresh {
		if int(id) < len(table) {
			table[id] = entry(id)
		} else {
			table = append(table, entry(id))
		}
	}
	return table
}

// Cleared is Renew with zero values.
func Cleared[T any, I ~int32](table []T, fresh []I) []T {
	return Renew(table, fresh, func(I) (zero T) { return zero })
}

// Forget sets those entries of a table that have another meaning now. The table may be shorter than the spec's.
func Forget[T any, I ~int32](table []T, fresh []I, entry T) {
	for _, id := range fresh {
		if int(id) < len(table) {
			table[id] = entry
		}
	}
}

// slots hands out places in the tables of a spec that is a copy of its own: free ones first, then at the end. An app
// takes the place of a closed one with as many stages, so that every entry of the tables is always whole.
type slots struct {
	*Spec
	apps     []AppID
	variants []VariantID // retired ones of open apps
}

// place is where an app goes: its place, those of its stages and of its variants, ascending, and which of the variants
// that were there are left over. They stay, retired.
type place struct {
	app      AppID
	stages   []StageID
	variants []VariantID
}

func (s *Spec) slots(free *Free) *slots {
	x := &slots{Spec: s}
	if free != nil {
		x.apps, x.variants = slices.Sorted(slices.Values(free.Apps)), slices.Sorted(slices.Values(free.Variants))
	}
	return x
}

// app returns places for an app of so many stages and variants. The entries there have the next generation and are
// empty otherwise, but for variants that are left over.
func (x *slots) app(stages, variants int) place {
	var p place
	at := slices.IndexFunc(x.apps, func(a AppID) bool { return len(x.Apps[a].Stages) == stages })
	if at < 0 {
		p.app = AppID(len(x.Apps))
		x.Apps = append(x.Apps, App{})
		for range stages {
			p.stages = append(p.stages, StageID(len(x.Stages)))
			x.Stages = append(x.Stages, Stage{})
		}
	} else {
		p.app = x.apps[at]
		x.apps = slices.Delete(x.apps, at, at+1)
		p.stages = slices.Sorted(slices.Values(x.Apps[p.app].Stages))
		x.Apps[p.app] = App{Generation: x.Apps[p.app].Generation + 1}
	}
	var there []VariantID
	for _, st := range p.stages {
		there = append(there, x.Stages[st].Variants...)
		if at >= 0 {
			x.Stages[st] = Stage{Variants: x.Stages[st].Variants, Generation: x.Stages[st].Generation + 1}
		}
	}
	slices.Sort(there)
	p.variants = slices.Clone(there[:min(len(there), variants)])
	for _, v := range there {
		x.Variants[v].Retired = true
	}
	for _, v := range p.variants {
		x.take(v)
	}
	for len(p.variants) < variants {
		p.variants = append(p.variants, x.variant())
	}
	slices.Sort(p.variants)
	return p
}

// variant returns a place for a variant: that of a retired one, or one at the end.
func (x *slots) variant() VariantID {
	if len(x.variants) == 0 {
		x.Variants = append(x.Variants, Variant{})
		return VariantID(len(x.Variants) - 1)
	}
	v := x.variants[0]
	x.variants = x.variants[1:]
	x.take(v)
	return v
}

// take empties the place of a variant.
func (x *slots) take(v VariantID) {
	st := &x.Stages[x.Variants[v].Stage]
	st.Variants = slices.DeleteFunc(slices.Clone(st.Variants), func(o VariantID) bool { return o == v })
	x.Variants[v] = Variant{Generation: x.Variants[v].Generation + 1}
}
