package ramsis

import (
	"math"
	"time"
)

// stream is how arrivals come to one worker: every so many of a process. Where it stands among those is a phase, how
// many have passed since the last that was its own.
type stream struct {
	Arrivals // of the process
	phases   int
}

// streams returns the worker's stream, or its streams by the length of its queue (see class).
func streams(w *Worker) []*stream {
	if w.Balance == RoundRobin {
		return []*stream{{w.Arrivals, w.Workers}}
	}
	// App. I: a worker with few waiting gets its share, one with many what its siblings leave over (Gupta et al. 2007).
	share := w.Arrivals.Rate() / float64(w.Workers)
	mu := w.modelRate(share)
	few := Poisson(share)
	many := Poisson(max(math.Pow(share/mu, float64(w.Workers))*mu, 1e-6*share))
	return []*stream{{few, 1}, {many, 1}}
}

// class is the index of the stream of a worker with n waiting queries.
func (p *problem) class(n int) int {
	if len(p.streams) > 1 && n >= 3 {
		return 1
	}
	return 0
}

// carries returns how many queries a second the most accurate model serves that carries the given rate within the
// objective; the fastest when none does. It is the mu of App. I, which the paper gives as a latency: only a rate makes
// the formula one.
func (w *Worker) modelRate(rate float64) float64 {
	best, accuracy, most := 0.0, math.Inf(-1), 0.0
	for _, m := range w.Models {
		top := m.bestRate(w.SLO)
		most = max(most, top)
		if top >= rate && m.Accuracy > accuracy {
			best, accuracy = top, m.Accuracy
		}
	}
	if best == 0 {
		return max(most, 1e-9)
	}
	return best
}

// later tells, for 0 and more, the probability that so many of the worker's own arrivals come within t seconds after
// one of them, as long as the queue then has room.
func (s *stream) laterArrivals(t float64, longest int, tell func(more int, share float64)) {
	sum := 0.0
	for more := range longest {
		share := 0.0
		for k := more * s.phases; k < (more+1)*s.phases; k++ {
			share += math.Exp(s.LogAfter(k, t))
		}
		if share > 1e-15 {
			tell(more, share)
		}
		if sum += share; sum > 1-1e-13 {
			return
		}
	}
}

// weigh returns how likely each phase is when n queries wait of which the first came t seconds ago (interval A of
// §4.4.2): (n-1)K and the phase have come since.
func (s *stream) phaseWeights(n int, t float64, out []float64) {
	if s.phases == 1 {
		out[0] = 1
		return
	}
	most := math.Inf(-1)
	for r := range out {
		out[r] = s.LogAfter((n-1)*s.phases+r, t)
		most = max(most, out[r])
	}
	if math.IsInf(most, -1) {
		// It cannot be; what comes nearest is the first phase when there was too little time for so many, else the
		// last.
		clear(out)
		if s.Rate()*t < float64(n*s.phases) {
			out[0] = 1
		} else {
			out[len(out)-1] = 1
		}
		return
	}
	sum := 0.0
	for r := range out {
		out[r] = math.Exp(out[r] - most)
		sum += out[r]
	}
	for r := range out {
		out[r] /= sum
	}
}

// come returns the probability that, within t seconds, arrivals enough for the worker's next come, by phase.
func (s *stream) nextArrival(t float64, out []float64) {
	sum := 0.0 // of fewer than m arrivals
	for m := 1; m <= s.phases; m++ {
		if t > 0 {
			sum += math.Exp(s.LogCount(m-1, t))
		} else {
			sum = 1
		}
		out[s.phases-m] = max(1-sum, 0)
	}
}

// table of a stream over the time that a batch takes.
type table struct {
	// by edge, then phase: the next one of the worker's own comes before what the edge leaves of the time
	come  [][]float64
	fewer []float64 // by k: fewer than k arrivals of the process within the time
}

func (p *problem) table(s *stream, took time.Duration) *table {
	t := &table{}
	l := seconds(took)
	for _, e := range p.edges {
		row := make([]float64, s.phases)
		s.nextArrival(l-e, row)
		t.come = append(t.come, row)
		if e >= l {
			break
		}
	}
	if p.firstStateNode < 0 {
		return t
	}
	sum := 0.0
	for k := 0; k <= (p.MaxQueue+1)*s.phases && sum < 1-1e-13; k++ {
		t.fewer = append(t.fewer, sum)
		sum += math.Exp(s.LogCount(k, l))
	}
	t.fewer = append(t.fewer, 1)
	return t
}
