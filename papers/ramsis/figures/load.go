package ramsis

import (
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// load is a rate of arrivals over time.
type load struct {
	name string
	rate *workload.Rate
	span time.Duration
	gaps workload.Gaps // exponential but where a figure says otherwise (§7, "Workloads")
	// known is the load in queries/s where systems know it exactly (§7.2); 0 where they must estimate it.
	known float64
	// planTime is how long plans take to be made; 0 where the paper leaves that out.
	planTime time.Duration
	// grid makes all systems use policies for the authors' loads.
	grid bool
	// policyRates are the authors' loads; tests use fewer.
	policyRates []float64
}

const (
	traceSpan    = 300 * time.Second
	constantSpan = 30 * time.Second
	// traceSeconds is the length of the trace in the authors' simulator. It has one entry a second, and the last step
	// has only one. The run is longer, so the trace starts again.
	traceSeconds = 261
)

func newLoad(name string, span time.Duration, points []workload.Point, known float64) (*load, error) {
	rate, err := workload.NewRate(append(points, workload.Point{At: span.Seconds()}), false)
	return &load{name: name, rate: rate, span: span, known: known,
		gaps: workload.Poisson{}, policyRates: authorsRates}, err
}

// newConstantLoad returns a constant rate above 0, which systems know.
func newConstantLoad(name string, rate float64, span time.Duration) *load {
	l, err := newLoad(name, span, []workload.Point{{Rate: rate}}, rate)
	if err != nil {
		panic(err)
	}
	return l
}

// newTraceLoad returns the production trace as the authors' simulator plays it, for the time span.
func newTraceLoad(span time.Duration) (*load, error) {
	var points []workload.Point
	for pass := 0; pass*traceSeconds < int(span.Seconds()); pass++ {
		if err := data.Read("twitter.csv", "start_s,queries_per_s", 0, func(_ []string, v []float64) error {
			if at := v[0] + float64(pass*traceSeconds); at < span.Seconds() {
				points = append(points, workload.Point{At: at, Rate: v[1]})
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return newLoad("trace", span, points, 0)
}

// expected returns the mean number of queries.
func (l *load) expected() float64 { return l.rate.Expected(serving.Time(l.span)) }

// source returns the queries of a seed. They are the same for every system.
func (l *load) source(seed uint64) workload.Source {
	return &workload.App{
		Times:    workload.NewProcess(l.rate, l.gaps, workload.Rand(seed, l.name)),
		Template: reproduce.Query(0),
	}
}
