package config

import (
	"math"
	"reflect"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// spec returns the distribution as in workload files. A number out of their range becomes one that they refuse.
func (i *Items) spec() workload.ItemsSpec {
	size := func(n int) int32 { return int32(max(min(n, math.MaxInt32), math.MinInt32)) }
	out := workload.ItemsSpec{
		Distribution: i.Distribution, Value: size(i.Value), Min: size(i.Min), Max: size(i.Max), Mu: i.Mu,
		Sigma: i.Sigma,
		Mean:  i.Mean, Deviation: i.Deviation, Weights: i.Weights, RoundUpTo: size(i.RoundUpTo),
	}
	for _, n := range i.Sizes {
		out.Sizes = append(out.Sizes, size(n))
	}
	for k := range i.Parts {
		out.Parts = append(out.Parts, i.Parts[k].spec())
	}
	return out
}

// mix returns the sizes of queries; the zero value when the file does not say.
func (i *Items) mix() (serving.Mix, error) {
	if reflect.DeepEqual(*i, Items{}) {
		return serving.Mix{}, nil
	}
	spec := i.spec()
	sizes, err := spec.Build()
	if err != nil {
		return serving.Mix{}, err
	}
	return sizes.Mix(), nil
}
