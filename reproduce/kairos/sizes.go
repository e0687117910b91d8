package kairos

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/workload"
)

// sizes is a distribution of query sizes.
type sizes int

const (
	production sizes = iota // as the authors' code draws them for the trace of [17]
	gaussian                // §8.4, §8.6
)

func (s sizes) String() string { return [...]string{"production", "gaussian"}[s] }

// mix is the distribution, as shares of multiples of 10: the authors round up to what they measured.
func (s sizes) mix() (serving.Mix, error) {
	if s == gaussian {
		return normal()
	}
	inside, middle := narrow()
	spike := workload.UniformSize{Min: 190, Max: 199}
	all, err := workload.Blend(
		[]serving.Mix{
			workload.UniformSize{Min: 1, Max: 99}.Mix(), workload.UniformSize{Min: 200, Max: 599}.Mix(), workload.UniformSize{Min: 600, Max: 999}.Mix(),
			middle, spike.Mix(),
		},
		[]float64{8, 22, 5, 64 * inside, 64 * (1 - inside)})
	return workload.RoundUp(all, step), err
}

// normal are Gaussian sizes. The paper gives no parameters: these are the mean and the deviation of the production sizes, so that
// it is the shape that differs, cut to the sizes that there are.
func normal() (serving.Mix, error) {
	like, err := production.mix()
	if err != nil {
		return like, err
	}
	mean, squares := like.Mean(), 0.0
	for c := range like.Classes() {
		items, share := like.Class(c)
		squares += share * (float64(items) - mean) * (float64(items) - mean)
	}
	g, err := workload.NewGaussian(mean, math.Sqrt(squares), 1, largest)
	if err != nil {
		return like, err
	}
	return workload.RoundUp(g.Mix(), step), nil
}

// narrow is what is drawn log-normally with parameters 5.1 and 0.2: the probability that it lies in [100, 200], and the whole
// numbers to which it is cut there. What lies outside is drawn anew from 190 to 199.
func narrow() (inside float64, mix serving.Mix) {
	const mu, sigma = 5.1, 0.2
	below := func(x float64) float64 { return math.Erfc((mu-math.Log(x))/(sigma*math.Sqrt2)) / 2 }
	inside = below(200) - below(100)
	for k := 100.0; k < 200; k++ {
		mix.Sizes = append(mix.Sizes, int32(k))
		mix.Shares = append(mix.Shares, (below(k+1)-below(k))/inside)
	}
	return inside, mix
}
