package nn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// shard is the number of images that one goroutine processes at a time. The result depends on it, and not on the number
// of cores: gradients are summed shard by shard, in order.
const shard = 8

// Training is the parameters of Train.
type Training struct {
	Stages []Stage // one after the other
	Batch  int     // images in a batch, rounded up to a multiple of 8
	Rate   float64 // the learning rate at its highest; it rises over the first 5 % of the steps and falls as a cosine
	Decay  float64 // weights shrink by Rate*Decay each step
	Seed   uint64
	// Fill sets x to an image of the stage's height and width and returns its label. It is called from several
	// goroutines at once, with a generator of its own for each image.
	Fill func(rng *rand.Rand, size int, x []float32) int
	// Progress, if not nil, is called every 20 steps and at the end with the steps done and the mean loss since the
	// last call.
	Progress func(step int, loss float64)
}

// Stage is a number of steps on pictures of one height and width. Networks here do not depend on these. They learn
// shapes from small pictures, which cost little, and the surroundings from larger ones.
type Stage struct{ Size, Steps int }

// Steps returns the number of steps of all stages.
func (t *Training) Steps() int {
	sum := 0
	for _, s := range t.Stages {
		sum += s.Steps
	}
	return sum
}

// Train improves the network's weights in place. It uses all cores and stops early with the context's error.
func Train(ctx context.Context, net *Net, t Training) error {
	if t.Steps() < 1 || t.Batch < 1 || t.Fill == nil {
		return errors.New("train: steps, batch and fill must be set")
	}
	shards := (t.Batch + shard - 1) / shard
	runners := make([]*Runner, shards)
	losses := make([]float64, shards)
	images := make([][]float32, shards)
	opt := newAdam(net)
	var sum float64
	var since, stage, until int
	for step := range t.Steps() {
		for ; step == until; stage++ {
			net = net.At(t.Stages[stage].Size, t.Stages[stage].Size)
			for s := range runners {
				runners[s] = net.Runner()
				images[s] = make([]float32, shard*net.in.Len())
			}
			until += t.Stages[stage].Steps
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		parallel(shards, func(s int) {
			labels := make([]int, shard)
			for i := range labels {
				rng := rand.New(rand.NewPCG(t.Seed, uint64((step*shards+s)*shard+i)))
				labels[i] = t.Fill(rng, net.in.W, images[s][i*net.in.Len():(i+1)*net.in.Len()])
			}
			losses[s] = runners[s].gradients(images[s], labels)
		})
		opt.step(runners, 1/float32(shards*shard), t.rate(step), t.Decay)
		for _, l := range losses {
			sum += l
		}
		since += shards * shard
		if t.Progress != nil && (step%20 == 19 || step == t.Steps()-1) {
			t.Progress(step+1, sum/float64(since))
			sum, since = 0, 0
		}
	}
	return nil
}

func (t *Training) rate(step int) float64 {
	warm := float64(t.Steps()) * 0.05
	if s := float64(step); s < warm {
		return t.Rate * (s + 1) / (warm + 1)
	}
	at := (float64(step) - warm) / (float64(t.Steps()) - warm)
	return t.Rate * (0.5 + 0.5*math.Cos(math.Pi*at))
}

// parallel calls f(0) to f(n-1) on all cores.
func parallel(n int, f func(int)) {
	var wg sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	wg.Wait()
}

// adam holds the running means of gradients and of their squares.
type adam struct {
	net  *Net
	m, v [][]float32
	t    int
}

func newAdam(net *Net) *adam {
	a := &adam{net: net}
	for _, l := range net.layers {
		a.m = append(a.m, make([]float32, len(l.weights())))
		a.v = append(a.v, make([]float32, len(l.weights())))
	}
	return a
}

func (a *adam) step(runners []*Runner, scale float32, rate, decay float64) {
	const b1, b2, eps = 0.9, 0.999, 1e-8
	a.t++
	// weight of the newest value in a running mean; at first it is a plain mean, so that the first value does not
	// dominate
	weight := max(0.02, 1/float32(a.t))
	lr := float32(rate * math.Sqrt(1-math.Pow(b2, float64(a.t))) / (1 - math.Pow(b1, float64(a.t))))
	shrink := float32(1 - rate*decay)
	const block = 8192
	for i, l := range a.net.layers {
		p := l.weights()
		parallel((len(p)+block-1)/block, func(k int) {
			lo, hi := k*block, min((k+1)*block, len(p))
			g := runners[0].grads[i][lo:hi]
			for _, r := range runners[1:] {
				for j, v := range r.grads[i][lo:hi] {
					g[j] += v
				}
			}
			w, m, v := p[lo:hi], a.m[i][lo:hi], a.v[i][lo:hi]
			learned := max(0, min(hi, len(p)-l.running())-lo)
			for j, d := range g[learned:] {
				w[learned+j] += weight * (d*scale - w[learned+j])
			}
			g, w = g[:learned], w[:learned]
			for j, d := range g {
				d *= scale
				m[j] = b1*m[j] + (1-b1)*d
				v[j] = b2*v[j] + (1-b2)*d*d
				w[j] = w[j]*shrink - lr*m[j]/(float32(math.Sqrt(float64(v[j])))+eps)
			}
		})
		l.refresh()
	}
}
