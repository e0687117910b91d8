package profiler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config says what to measure and how well. Spec and Backend are needed, and Input or Tensors; everything else has a
// default.
type Config struct {
	Spec    *serving.Spec
	Backend dataplane.Backend
	// Variants to measure; nil means all of Spec's.
	Variants []serving.VariantID
	// DeviceType and Worker are what the instances are launched on.
	DeviceType serving.DeviceTypeID
	Worker     serving.WorkerID
	// MaxBatch bounds the batch sizes 1, 2, 4, ... and the bound itself; each variant's own MaxBatch does too. 0 means
	// the variant's alone.
	MaxBatch int
	// Slots is the highest concurrency measured, from 1 up; 0 means 1.
	Slots int
	// Cores are the threads a run may use; 0 leaves it to the runtime.
	Cores int

	// Input returns inputs of so many items. Their rows are sent as queries of one item each, as most traffic is.
	Input func(v serving.VariantID, items int) []tensor.Tensor
	// Tensors says what a variant takes, and whether its first dimension counts items. It is asked when Input is nil:
	// the inputs are then random, from Seed, with 1 for every open dimension.
	Tensors func(v serving.VariantID) (inputs []tensor.Spec, batched bool, err error)

	// RandomBatch makes a batch of so many items out of rng for variants whose inputs are not rows of items alone; nil
	// leaves a variant to Input or Tensors. A nil function leaves all of them.
	RandomBatch func(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Part, error)

	// MeanWidth and P95Width are how well a point must be known: half the width of the 95 % confidence intervals of its
	// mean and of its 95th percentile, relative to them. 0 means 0.05 and 0.10.
	MeanWidth, P95Width float64
	// MinSamples, MaxSamples and MaxTime bound the effort per point, whatever its confidence. 0 means 10 samples, 2,000
	// samples and 3 seconds.
	MinSamples, MaxSamples int
	MaxTime                time.Duration
	// Turn is how long a point is measured before the next has its turn; 0 means 50 ms.
	Turn time.Duration
	// Bound stops a variant's measurement at the first batch size whose mean exceeds it: no plan would use a larger
	// one. Nil means four times the SLO of the variant's app; a result of 0 means no bound.
	Bound func(v serving.VariantID) time.Duration
	// LoadedVariants is how many variants are loaded at once, and so take turns with each other; 0 means 8.
	LoadedVariants int
	// Seed chooses the order of turns and the random inputs.
	Seed uint64

	// Partial is a file to which finished points are appended and from which they are taken when Run is called again;
	// empty means none.
	Partial string
	// ModelFile names the file whose contents a variant's finished points depend on; nil means that they depend on the
	// variant's name and version only, as an empty name does.
	ModelFile func(v serving.VariantID) string
	// Identity is what else they depend on, of variants that have no file; nil for nothing.
	Identity func(v serving.VariantID) string
	// Host is recorded in the profile, and finished points depend on it. ThisHost fills it in.
	Host Host
}

// withDefaults returns a copy with every zero field filled in, or an error that names the field that is wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Spec == nil || c.Backend == nil {
		return c, errors.New("profiler: Spec and Backend are needed")
	}
	if c.Input == nil && c.Tensors == nil {
		return c, errors.New("profiler: Input or Tensors is needed")
	}
	if c.DeviceType < 0 || int(c.DeviceType) >= len(c.Spec.DeviceTypes) {
		return c, fmt.Errorf("profiler: device type %d does not exist", c.DeviceType)
	}
	if c.Variants == nil {
		for v := range c.Spec.Variants {
			c.Variants = append(c.Variants, serving.VariantID(v))
		}
	}
	for i, v := range c.Variants {
		if v < 0 || int(v) >= len(c.Spec.Variants) {
			return c, fmt.Errorf("profiler: variant %d does not exist", v)
		}
		if slices.Contains(c.Variants[:i], v) {
			return c, fmt.Errorf("profiler: variant %q is listed twice", c.Spec.Variants[v].Name)
		}
	}
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"MeanWidth", c.MeanWidth}, {"P95Width", c.P95Width}, {"MaxTime", float64(c.MaxTime)},
		{"Turn", float64(c.Turn)}, {"MinSamples", float64(c.MinSamples)}, {"MaxSamples", float64(c.MaxSamples)},
		{"MaxBatch", float64(c.MaxBatch)}, {"Slots", float64(c.Slots)}, {"Cores", float64(c.Cores)},
		{"LoadedVariants", float64(c.LoadedVariants)},
	} {
		if !(x.value >= 0) {
			return c, fmt.Errorf("profiler: %s is %v, want at least 0", x.name, x.value)
		}
	}
	c.MeanWidth = orDefault(c.MeanWidth, 0.05)
	c.P95Width = orDefault(c.P95Width, 0.10)
	c.MinSamples = orDefault(c.MinSamples, 10)
	c.MaxSamples = max(orDefault(c.MaxSamples, 2000), c.MinSamples)
	c.MaxTime = orDefault(c.MaxTime, 3*time.Second)
	c.Turn = orDefault(c.Turn, 50*time.Millisecond)
	c.Slots = orDefault(c.Slots, 1)
	c.LoadedVariants = orDefault(c.LoadedVariants, 8)
	if c.Bound == nil {
		spec := c.Spec
		c.Bound = func(v serving.VariantID) time.Duration {
			return 4 * spec.Apps[spec.Stages[spec.Variants[v].Stage].App].SLO.Latency
		}
	}
	return c, nil
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// maxBatch is the largest batch size measured for a variant.
func (c *Config) maxBatch(v serving.VariantID) int {
	m := max(1, c.Spec.Variants[v].MaxBatch)
	if c.MaxBatch > 0 {
		m = min(m, c.MaxBatch)
	}
	return m
}

// batchSizes returns 1, 2, 4, ... up to limit, and limit.
func batchSizes(limit int) []int {
	var sizes []int
	for n := 1; n < limit; n *= 2 {
		sizes = append(sizes, n)
	}
	return append(sizes, limit)
}
