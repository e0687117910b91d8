package profiler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Config says what to measure and how exactly. Spec, Backend, and Input or Tensors are required. All other fields have
// defaults.
type Config struct {
	Spec    *serving.Spec
	Backend dataplane.Backend
	// Variants are the variants to measure; nil means all of Spec.
	Variants []serving.VariantID
	// DeviceType and Worker are where instances are launched.
	DeviceType serving.DeviceTypeID
	Worker     serving.WorkerID
	// MaxBatch is the largest batch size. Sizes are 1, 2, 4 and so on, and the largest. A variant's own MaxBatch also
	// limits it. 0 means the variant's alone.
	MaxBatch int
	// Slots is the highest concurrency. All from 1 up are measured. 0 means 1.
	Slots int
	// Cores is the number of threads that a run may use; 0 leaves it to the runtime.
	Cores int

	// Memory returns how much of the device's memory is in use, in bytes; false where that is not known. Nil means that
	// it never is.
	Memory func(ctx context.Context) (used int64, known bool)

	// Spares are spare processes that the backend keeps for models that are loaded. Where it has some, a load is
	// measured as it goes while a server runs: a second time, once they wait again. Nil is for none.
	Spares Spares

	// Input returns the inputs of so many items. Their rows become queries of one item each, as most traffic has.
	Input func(v serving.VariantID, items int) []tensor.Tensor
	// Tensors returns a variant's inputs and whether their first dimension counts items. It is used when Input is nil:
	// inputs are then random, from Seed, and open dimensions are 1.
	Tensors func(v serving.VariantID) (inputs []tensor.Spec, batched bool, err error)

	// RandomBatch makes a batch of so many items from rng, for variants whose inputs are more than rows of items. Where
	// it returns nil, and when it is nil itself, Input or Tensors is used.
	RandomBatch func(rng *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error)

	// Length says what the length of a variant's inputs is, which is measured at several: all their open dimensions
	// beside the items belong to it. It returns nil for those that have one length; nil itself is for none that has
	// more.
	Length func(v serving.VariantID) *tensor.Length

	// Unsure tells of a variant that only the shapes of its model say that it batches: a look compares two items that
	// run together with each alone. Nil for none.
	Unsure func(v serving.VariantID) bool

	// MeanWidth and P95Width say how exactly a point is measured: half the width of the 95 % confidence intervals of
	// its mean and of its 95th percentile, relative to these. 0 means 0.05 and 0.10.
	MeanWidth, P95Width float64
	// MinSamples, MaxSamples and MaxTime limit the effort for a point, however exact it is. 0 means 10 samples, 2,000
	// samples and 3 seconds.
	MinSamples, MaxSamples int
	MaxTime                time.Duration
	// Within limits the effort for all points together: once so much time has passed, a point ends with the samples
	// that it has, at least one. Variants that are loaded together take turns, so that it is divided evenly. 0 means no
	// limit.
	Within time.Duration
	// Bound ends the measurement of a variant at the first batch size whose mean is longer: no plan would use a larger
	// size. Nil means four times the SLO of the variant's app. A result of 0 means no bound.
	Bound func(v serving.VariantID) time.Duration
	// LoadedVariants is how many variants are loaded at the same time and take turns with each other; 0 means 8.
	LoadedVariants int
	// Seed determines the order of turns, the pauses between them and the random inputs.
	Seed uint64

	// Await is called before each turn, and returns when it may begin; nil for at once. Its error ends the measurement.
	Await func(ctx context.Context) error

	// Partial is a file to which finished points are appended. Another Run takes them from there. Empty means none.
	Partial string
	// ModelFile returns the file on whose content a variant's finished points depend. When it is nil or returns "",
	// they depend on the name and version of the variant only.
	ModelFile func(v serving.VariantID) string
	// Identity returns what else they depend on, for variants without a file; nil for nothing.
	Identity func(v serving.VariantID) string
	// Host is recorded in the profile, and finished points depend on it. ThisHost returns it.
	Host Host
}

// withDefaults returns a copy with defaults in the place of zero fields, or an error that names the field that is
// wrong.
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
		{"MinSamples", float64(c.MinSamples)}, {"MaxSamples", float64(c.MaxSamples)},
		{"Within", float64(c.Within)},
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

// maxBatch returns the largest batch size that is measured for a variant.
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
