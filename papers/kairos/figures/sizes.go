package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// sizes is a distribution of query sizes.
type sizes int

const (
	production sizes = iota // as the authors' code draws them for the trace of [17]
	// mean and deviation of the production sizes: §8.4 and §8.6 give no parameters
	gaussian
	deepRecSys // default of DeepRecSys, on whose generator of queries the paper builds
)

// gaussians are the Gaussian sizes.
var gaussians = []sizes{gaussian, deepRecSys}

// gaussianParameters are the means and deviations, in items.
var gaussianParameters = map[sizes][2]float64{gaussian: {243, 180}, deepRecSys: {165, 16}}

func (s sizes) String() string {
	if v, ok := gaussianParameters[s]; ok {
		return fmt.Sprintf("Gaussian (%g, %g)", v[0], v[1])
	}
	return "production"
}

// mix returns the distribution over multiples of itemStep. The authors round sizes up to those that they measured.
func (s sizes) mix() (serving.Mix, error) {
	if v, ok := gaussianParameters[s]; ok {
		g, err := workload.NewGaussian(v[0], v[1], 1, maxItems) // truncated to the sizes that exist
		if err != nil {
			return serving.Mix{}, err
		}
		return workload.RoundUp(g.Mix(), itemStep), nil
	}
	inside, middle := truncatedLognormal()
	spike := workload.UniformSize{Min: 190, Max: 199}
	all, err := workload.Blend(
		[]serving.Mix{
			workload.UniformSize{Min: 1, Max: 99}.Mix(), workload.UniformSize{Min: 200, Max: 599}.Mix(),
			workload.UniformSize{Min: 600, Max: 999}.Mix(),
			middle, spike.Mix(),
		},
		[]float64{8, 22, 5, 64 * inside, 64 * (1 - inside)})
	return workload.RoundUp(all, itemStep), err
}

// truncatedLognormal describes the log-normal part of the production sizes, with parameters 5.1 and 0.2. inside is the
// probability that a draw lies in [100, 200], and mix the distribution of its whole part there. Draws outside are
// replaced by sizes from 190 to 199.
func truncatedLognormal() (inside float64, mix serving.Mix) {
	const mu, sigma = 5.1, 0.2
	below := func(x float64) float64 { return math.Erfc((mu-math.Log(x))/(sigma*math.Sqrt2)) / 2 }
	inside = below(200) - below(100)
	for k := 100.0; k < 200; k++ {
		mix.Sizes = append(mix.Sizes, int32(k))
		mix.Shares = append(mix.Shares, (below(k+1)-below(k))/inside)
	}
	return inside, mix
}
