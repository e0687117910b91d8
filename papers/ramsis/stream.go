package ramsis

import (
	"math"
	"time"
)

// stream is the arrivals at one worker: every K-th arrival of a process. Its phase is how many arrivals have come since
// the last one that was the worker's own.
type stream struct {
	Arrivals // of the process
	// K
	phases int
}

// streams returns the worker's stream, or its streams by the length of its queue (see class).
func streams(w *Worker) []*stream {
	if w.Balance == RoundRobin {
		return []*stream{{w.Arrivals, w.Workers}}
	}
	// App. I: a worker with a short queue gets its share of the arrivals, one with a long queue what the others leave
	// over (Gupta et al. 2007).
	share := w.Arrivals.Rate() / float64(w.Workers)
	mu := w.modelRate(share)
	few := Poisson(share)
	many := Poisson(max(math.Pow(share/mu, float64(w.Workers))*mu, 1e-6*share))
	return []*stream{{few, 1}, {many, 1}}
}

// class returns the index of the stream of a worker with n waiting queries.
func (p *problem) class(n int) int {
	if len(p.streams) > 1 && n >= 3 {
		return 1
	}
	return 0
}

// modelRate returns the queries/s of the most accurate model that carries the given rate within the objective; of the
// fastest model when none does. It is the mu of App. I. The paper gives that as a latency, but only a rate makes sense
// in its formula.
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

// laterArrivals calls visit for 0, 1, ... with the probability that so many of the worker's own arrivals come within t
// seconds after one of them, as long as the queue has room for them.
func (s *stream) laterArrivals(t float64, longest int, visit func(more int, share float64)) {
	sum := 0.0
	for more := range longest {
		share := 0.0
		for k := more * s.phases; k < (more+1)*s.phases; k++ {
			share += math.Exp(s.LogAfter(k, t))
		}
		if share > 1e-15 {
			visit(more, share)
		}
		if sum += share; sum > 1-1e-13 {
			return
		}
	}
}

// phaseWeights sets out, by phase, to the probability of the phase when n queries wait, of which the first came t
// seconds ago (interval A of §4.4.2): (n-1)K + phase arrivals have come since.
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
		// The state is impossible. The nearest possible phase is the first one if there was too little time for so many
		// arrivals, else the last.
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

// nextArrival sets out, by phase, to the probability that the worker's next own arrival comes within t seconds.
func (s *stream) nextArrival(t float64, out []float64) {
	sum := 0.0 // probability of fewer than m arrivals
	for m := 1; m <= s.phases; m++ {
		if t > 0 {
			sum += math.Exp(s.LogCount(m-1, t))
		} else {
			sum = 1
		}
		out[s.phases-m] = max(1-sum, 0)
	}
}

// table is the arrivals of a stream during a batch.
type table struct {
	// arrivesBefore is by edge, then phase: the probability that the worker's next own arrival comes before the end of
	// the batch less the edge.
	arrivesBefore [][]float64
	fewer         []float64 // by k: probability of fewer than k arrivals of the process
}

func (p *problem) table(s *stream, took time.Duration) *table {
	t := &table{}
	l := seconds(took)
	for _, e := range p.edges {
		row := make([]float64, s.phases)
		s.nextArrival(l-e, row)
		t.arrivesBefore = append(t.arrivesBefore, row)
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
