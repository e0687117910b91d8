package config

import (
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// length checks what a file says the length of a variant's queries is. What is known of the variant's inputs is in b.
func (r *resolver) length(l *Length, path string, b *Binding) *tensor.Length {
	out := &tensor.Length{Input: l.Input, Axes: l.Axes}
	rank := -1
	if at := slices.IndexFunc(b.Inputs, func(s tensor.Spec) bool { return s.Name == l.Input }); at >= 0 {
		if shape := b.Inputs[at].Shape; shape != nil {
			rank = len(shape)
		}
	} else if l.Input == "" || b.Inputs != nil {
		var names []string
		for _, s := range b.Inputs {
			names = append(names, s.Name)
		}
		r.c.addf(path+".input", "is %q, want the name of an input of the model: %q", l.Input, names)
	}
	if len(l.Axes) == 0 {
		r.c.addf(path+".axes", "is empty, want the dimensions of the input whose product is the length, such as [1]")
	}
	for k, d := range l.Axes {
		switch {
		case d < 0 || d == 0 && b.Batched || rank >= 0 && d >= rank:
			r.c.addf(path+".axes", "has %d, want dimensions of the input, counted from 0, without that of the items", d)
		case slices.Contains(l.Axes[:k], d):
			r.c.addf(path+".axes", "has %d twice", d)
		}
	}
	return out
}
