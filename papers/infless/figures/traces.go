package infless

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The loads that follow a trace: the authors' artifact turns means of ten minutes into steps of nine seconds, has 200
// steps in a run, and scales loads to a peak.
const (
	minutesPerStep = 10
	stepSpan       = 9 * time.Second
	traceSteps     = 200
)

var traceNames = []string{"sporadic", "periodic", "bursty"}

// callsByMinute reads an embedded trace: the number of calls in every minute.
func callsByMinute(name string) (out []int, err error) {
	file := "trace_" + name + ".csv"
	rows, err := data.Records(file, "hour", "counts")
	if err != nil {
		return nil, err
	}
	for h, r := range rows {
		for _, word := range strings.Fields(r[1]) {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("data/%s: line %d: %q is no number of calls", file, h+3, word)
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// relativeLoad returns the load of the first n steps of a trace relative to the highest of them.
func relativeLoad(name string, n int) ([]float64, error) {
	minutes, err := callsByMinute(name)
	if err != nil {
		return nil, err
	}
	out := make([]float64, min(n, len(minutes)/minutesPerStep))
	for k := range out {
		for _, c := range minutes[k*minutesPerStep : (k+1)*minutesPerStep] {
			out[k] += float64(c)
		}
	}
	peak := slices.Max(out)
	for k := range out {
		out[k] /= peak
	}
	return out, nil
}

// arrivalsAlong returns independent Poisson arrivals for every app. The rate of app a in step k is load[k] x peaks[a].
func arrivalsAlong(load []float64, peaks []float64, step time.Duration) (func(seed uint64) workload.Source, error) {
	rates := make([]*workload.Rate, len(peaks))
	for a, peak := range peaks {
		points := make([]workload.Point, len(load)+1)
		for k, part := range load {
			points[k] = workload.Point{At: float64(k) * step.Seconds(), Rate: part * peak}
		}
		points[len(load)] = workload.Point{At: float64(len(load)) * step.Seconds()}
		var err error
		if rates[a], err = workload.NewRate(points, false); err != nil {
			return nil, fmt.Errorf("infless: the load: %w", err)
		}
	}
	return func(seed uint64) workload.Source {
		sources := make([]workload.Source, len(rates))
		for a, rate := range rates {
			sources[a] = &workload.App{
				Times: workload.NewProcess(rate, workload.Poisson{},
					workload.Rand(seed, fmt.Sprint("arrivals ", a))),
				Template: reproduce.Query(serving.AppID(a)),
			}
		}
		return workload.Merge(sources...)
	}, nil
}

// Sizes of the models in MB (Table 1).
var megabytes = map[string]float64{"ssd": 29, "mobilenet": 17, "resnet-50": 98, "textcnn-69": 11, "lstm-2365": 39}

const (
	// The paper does not say how long a start takes. The assumption: one second for the container and runtime, whose
	// image is present, and one second for every 50 MB of the model. So the five models start within 1.2 to 3 s.
	bareStart    = time.Second
	loadsASecond = 50.0
	// coldWait is how long a query waits for a cold start.
	coldWait = 20 * time.Second
)

// startTime returns how long an instance of a model takes to start.
func startTime(model string) time.Duration {
	return bareStart + time.Duration(megabytes[model]/loadsASecond*float64(time.Second))
}
