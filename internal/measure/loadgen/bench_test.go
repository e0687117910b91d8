package loadgen

import (
	"context"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// load sends b.N queries at a rate and reports how late they were sent.
func load(b *testing.B, target Target, rate float64, apps []App) {
	spec := workload.Spec{Seed: 1, MaxCount: int64(b.N), Apps: []workload.AppSpec{{App: "a", Rate: rate}}}
	src, err := spec.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	res, err := Run(b.Context(), target, apps, src, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if o := res.Report.Overall; o.Served != o.Offered {
		b.Fatalf("%d of %d served: %+v", o.Served, o.Offered, res.Errors)
	}
	b.ReportMetric(res.SendLag.P50*1e3, "lag-p50-us")
	b.ReportMetric(res.SendLag.P99*1e3, "lag-p99-us")
	b.ReportMetric(res.Report.Overall.Latency.P50*1e3, "latency-p50-us")
	b.ReportMetric(res.Report.Overall.Latency.P99*1e3, "latency-p99-us")
}

// BenchmarkSchedule runs the generator alone, with a target that answers at once.
func BenchmarkSchedule(b *testing.B) {
	for _, c := range []struct {
		name string
		rate float64
	}{{"1k", 1e3}, {"10k", 1e4}, {"100k", 1e5}} {
		b.Run(c.name, func(b *testing.B) {
			f := &instant{answer: &Answer{}}
			load(b, f, c.rate, oneApp(&Samples{Count: 1, inputs: numbers(1).inputs}))
		})
	}
}

type instant struct {
	fake
	answer *Answer
}

func (i *instant) Infer(context.Context, *Request) (*Answer, error) { return i.answer, nil }
