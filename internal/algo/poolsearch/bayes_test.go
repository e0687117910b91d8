package poolsearch

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// matern is the kernel straight from its formula (Rasmussen and Williams, Eq. 4.17).
func matern(a, b []int, length float64) float64 {
	sum := 0.0
	for c := range a {
		sum += math.Pow(float64(a[c]-b[c]), 2)
	}
	r := math.Sqrt(sum) / length
	return (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r)
}

// The sums that the process keeps, against solving the whole system anew (Eqs. 2.25, 2.26, 2.30) on values brought to
// mean 0 and deviation 1.
func TestAgainstDense(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		points := priced([]int{4, 5, 3}, []float64{1, 1, 1}, 9)
		s := space(t, points, nil)
		s.Limit = 3 + rng.IntN(40)
		search := Bayes(s, Surrogate{Starts: 1000}, rng)
		scale, shift := math.Pow(10, float64(rng.IntN(7)-3)), 100*rng.NormFloat64()
		var x []int
		var y []float64
		search.Run(func(i int) float64 {
			x = append(x, i)
			y = append(y, shift+scale*(rng.NormFloat64()+math.Sin(float64(points[i][0]+points[i][1]))))
			return y[len(y)-1]
		})
		b := search.strategy.(*bayes)
		n := len(x)
		mean, deviation := stat.Mean(y, nil), math.Sqrt(stat.PopVariance(y, nil))
		m, d := b.moments()
		if math.Abs(m+b.origin-mean) > 1e-9*scale || math.Abs(d-deviation) > 1e-9*scale {
			t.Fatalf("seed %d: mean %v, deviation %v, want %v, %v", seed, m+b.origin, d, mean, deviation)
		}
		normal := mat.NewVecDense(n, nil)
		for k := range y {
			normal.SetVec(k, (y[k]-mean)/deviation)
		}
		for g, length := range b.with.Lengths {
			kernel := mat.NewSymDense(n, nil)
			for i := range n {
				for j := range i + 1 {
					kernel.SetSym(i, j, matern(points[x[i]], points[x[j]], length))
				}
				kernel.SetSym(i, i, 1+noise)
			}
			var factor mat.Cholesky
			if !factor.Factorize(kernel) {
				t.Fatalf("seed %d: no factor for length %v", seed, length)
			}
			var weights, solved mat.VecDense
			if err := factor.SolveVecTo(&weights, normal); err != nil {
				t.Fatal(err)
			}
			want := -(mat.Dot(normal, &weights) + factor.LogDet()) / 2
			if got := b.models[g].likelihood(m, d); math.Abs(got-want) > 1e-6*math.Abs(want)+1e-6 {
				t.Errorf("seed %d, length %v: likelihood %v, want %v", seed, length, got, want)
			}
			for i, p := range points {
				cross := mat.NewVecDense(n, nil)
				for k := range x {
					cross.SetVec(k, matern(p, points[x[k]], length))
				}
				if err := factor.SolveVecTo(&solved, cross); err != nil {
					t.Fatal(err)
				}
				wantM := mean + deviation*mat.Dot(cross, &weights)
				wantV := deviation * deviation * max(0, 1-mat.Dot(cross, &solved))
				gotM, gotD := b.models[g].predict(i, m, d)
				if math.Abs(gotM+b.origin-wantM) > 1e-6*scale || math.Abs(gotD*gotD-wantV) > 1e-7*deviation*deviation {
					t.Fatalf("seed %d, length %v, %v: mean %v and variance %v, want %v and %v", seed, length, p,
						gotM+b.origin, gotD*gotD, wantM, wantV)
				}
			}
		}
	}
}

// Expected improvement against the sum over a normal variable's quantiles.
func TestImprovement(t *testing.T) {
	const steps = 200000
	for _, c := range [][2]float64{{0, 1}, {-1, 2}, {0.5, 0.1}, {-3, 1}, {2, 0}, {-2, 0}} {
		mean, deviation := c[0], c[1]
		want := max(0, mean)
		if deviation > 0 {
			want = 0
			normal := distuv.Normal{Mu: mean, Sigma: deviation}
			for k := range steps {
				want += max(0, normal.Quantile((float64(k)+0.5)/steps)) / steps
			}
		}
		if got := expectedImprovement(mean, deviation); math.Abs(got-want) > 1e-4*deviation {
			t.Errorf("mean %v, deviation %v: %v, want %v", mean, deviation, got, want)
		}
	}
}

// Drawn from a process, values are likeliest under the length they were drawn with or one beside it.
func TestFindsLength(t *testing.T) {
	points := priced([]int{7, 7, 7}, []float64{0, 0, 0}, 1)
	for _, length := range []float64{1, 2, 4} {
		right := 0
		for seed := uint64(1); seed <= 10; seed++ {
			rng := rand.New(rand.NewPCG(seed, 9))
			kernel := mat.NewSymDense(len(points), nil)
			for i := range points {
				for j := range i + 1 {
					kernel.SetSym(i, j, matern(points[i], points[j], length))
				}
				kernel.SetSym(i, i, 1+noise)
			}
			var factor mat.Cholesky
			if !factor.Factorize(kernel) {
				t.Fatal("no factor")
			}
			var lower mat.TriDense
			factor.LTo(&lower)
			draw, value := mat.NewVecDense(len(points), nil), new(mat.VecDense)
			for i := range points {
				draw.SetVec(i, rng.NormFloat64())
			}
			value.MulVec(&lower, draw)
			s := space(t, points, nil)
			s.Limit = 80
			search := Bayes(s, Surrogate{Starts: 1000}, rng)
			search.Run(value.AtVec)
			b := search.strategy.(*bayes)
			m, d := b.moments()
			best := 0
			for g := range b.models {
				if b.models[g].likelihood(m, d) > b.models[best].likelihood(m, d) {
					best = g
				}
			}
			if l := b.with.Lengths[best]; l >= length/2 && l <= length*2 {
				right++
			}
		}
		if right < 9 {
			t.Errorf("length %v: found %d times of 10 (seeds 1..10)", length, right)
		}
	}
}

// On a smooth hill under a budget the model finds the peak in far fewer evaluations than chance, without any pruning.
func TestBayesIsWorthIt(t *testing.T) {
	points := priced([]int{12, 12, 12}, []float64{1, 0.7, 0.5}, 9)
	value := hill(points)
	best := 0
	for i := range value {
		if value[i] > value[best] {
			best = i
		}
	}
	tries := func(search *Search) int {
		n := 0
		for i, ok := search.Next(); ok; i, ok = search.Next() {
			n++
			if i == best {
				break
			}
			search.Tell(value[i])
		}
		return n
	}
	model, chance := 0, 0
	for seed := uint64(1); seed <= 10; seed++ {
		model += tries(Bayes(space(t, points, nil), Surrogate{}, rand.New(rand.NewPCG(seed, 0))))
		chance += tries(Random(space(t, points, nil), rand.New(rand.NewPCG(seed, 0))))
	}
	t.Logf("seeds 1..10: %d evaluations against %d by chance", model, chance)
	if model*4 > chance {
		t.Errorf("seeds 1..10: %d evaluations, by chance %d", model, chance)
	}
}
