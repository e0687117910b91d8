package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
)

// sizes is a distribution of query sizes.
type sizes int

const (
	production sizes = iota // as the authors' code draws them for the trace of [17]
	// §8.4, §8.6: the paper gives no parameters; with mean and deviation of the production sizes
	gaussian
	deepRecSys // Gaussian as DeepRecSys, whose generator of queries the paper builds on, has it by default
)

// gaussians are the Gaussian sizes.
var gaussians = []sizes{gaussian, deepRecSys}

// gaussianParameters are their means and deviations.
var gaussianParameters = map[sizes][2]float64{gaussian: {243, 180}, deepRecSys: {165, 16}}

func (s sizes) String() string {
	if v, ok := gaussianParameters[s]; ok {
		return fmt.Sprintf("Gaussian (%g, %g)", v[0], v[1])
	}
	return "production"
}

// mix is the distribution, as shares of multiples of 10: the authors round up to what they measured.
func (s sizes) mix() (serving.Mix, error) {
	if v, ok := gaussianParameters[s]; ok {
		g, err := workload.NewGaussian(v[0], v[1], 1, maxItems) // cut to the sizes that there are
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

// truncatedLognormal is what is drawn log-normally with parameters 5.1 and 0.2: the probability that it lies in [100, 200], and the
// whole numbers to which it is cut there. What lies outside is drawn anew from 190 to 199.
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
