package ramsis

import (
	"time"

	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// load is a rate of arrivals over time. Gaps are exponential (§7, "Workloads").
type load struct {
	name string
	rate *workload.Rate
	span time.Duration
	// known is the load in queries/s when systems know it exactly (§7.2); 0 when they must estimate it.
	known float64
	// grid has policies made for the loads that the authors made them for.
	grid bool
}

const (
	traceSpan    = 300 * time.Second
	constantSpan = 30 * time.Second
	// traceSeconds is how many entries the authors' simulator makes of the trace's steps, one per second: the last step
	// has a single one. The run is longer and begins again.
	traceSeconds = 261
)

func newLoad(name string, span time.Duration, points []workload.Point, known float64) (*load, error) {
	rate, err := workload.NewRate(append(points, workload.Point{At: span.Seconds()}), false)
	return &load{name: name, rate: rate, span: span, known: known}, err
}

// newConstantLoad is 30 s at one rate.
func newConstantLoad(name string, rate float64) (*load, error) {
	return newLoad(name, constantSpan, []workload.Point{{Rate: rate}}, rate)
}

// newTraceLoad is the production trace as the authors' simulator plays it.
func newTraceLoad() (*load, error) {
	rows, err := data.Records("twitter.csv", "start_s", "queries_per_s")
	if err != nil {
		return nil, err
	}
	var points []workload.Point
	for pass := 0; pass*traceSeconds < int(traceSpan.Seconds()); pass++ {
		for n, r := range rows {
			v, err := reproduce.Numbers("twitter.csv", n, r)
			if err != nil {
				return nil, err
			}
			if at := v[0] + float64(pass*traceSeconds); at < traceSpan.Seconds() {
				points = append(points, workload.Point{At: at, Rate: v[1]})
			}
		}
	}
	return newLoad("trace", traceSpan, points, 0)
}

// expected is the mean number of queries.
func (l *load) expected() float64 { return l.rate.Expected(serving.Time(l.span)) }

// source draws the queries of a seed: the same for every system.
func (l *load) source(seed uint64) workload.Source {
	return &workload.App{
		Times:    workload.NewProcess(l.rate, workload.Poisson{}, workload.Rand(seed, l.name)),
		Template: workload.Arrival{Items: 1, Variant: serving.None, Sample: -1},
	}
}
