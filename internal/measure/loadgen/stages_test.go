package loadgen

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Stage times of a server are summed up. Names of stages may contain dots, and the number of invented stages is
// bounded.
func TestStageTimings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(_ context.Context, n int, r *Request) (*Answer, error) {
			a := echo(r)
			if !r.StageTimings {
				t.Error("a request does not ask for timings")
			}
			a.parameter("stage.find.queue_us", "", 1000, 1000)
			a.parameter("stage.find.run_us", "", 4000, 4000)
			a.parameter("stage.find.items", "", 1, 1)
			a.parameter("stage.find.batch", "", 8, 8)
			a.parameter("stage.find.variant", "small", 0, 0)
			if n%2 == 0 {
				a.parameter("stage.read.v2.items", "", int64(n), float64(n))
				a.parameter("stage.read.v2.run_us", "", -5, -5)
			}
			a.parameter("stage.", "", 1, 1)
			a.parameter("stage..run_us", "", 1, 1)
			return a, nil
		}}
		res, err := Run(t.Context(), f, oneApp(numbers(10)), even(8, 10*time.Millisecond), Options{
			StageTimings: true, Warmup: 20 * time.Millisecond, pacer: coarse,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Stages) != 2 {
			t.Fatalf("%+v", res.Stages)
		}
		find, read := res.Stages[0], res.Stages[1]
		if find.App != "digits" || find.Stage != "find" || find.Served != 6 || find.Items != 1 || find.Batch != 8 ||
			find.Queue.P50 != 1 || find.Run.P99 != 4 {
			t.Errorf("%+v", find)
		}
		// Queries 2, 4 and 6: the first two were warm-up.
		if read.Stage != "read.v2" || read.Served != 3 || read.Items != 4 || read.Run.Max != 0 {
			t.Errorf("%+v", read)
		}
	})
	var a Answer
	for k := range 1000 {
		a.parameter(fmt.Sprintf("stage.%d.run_us", k), "", 1, 1)
	}
	if len(a.Stages) != maxStages {
		t.Errorf("%d stages are kept", len(a.Stages))
	}
}

// Streams of a workload are sequences. The first and the last query of each are marked, and the first one carries the
// rate that its client declares.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(_ context.Context, _ int, r *Request) (*Answer, error) { return echo(r), nil }}
		var load []workload.Arrival
		for k, s := range []uint64{7, 0, 9, 7, 9, 7, 1 << 63} {
			load = append(load, workload.Arrival{
				At: serving.Time(k) * serving.Time(time.Millisecond), Items: 1, Variant: serving.None, Sample: -1,
				Stream: s,
			})
		}
		if _, err := Run(t.Context(), f, oneApp(numbers(10)), workload.FromSlice(load), Options{
			pacer: coarse, Clients: []workload.Client{{Stream: 9, Rate: 4}},
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for k, r := range f.seen {
			if want := map[bool]float64{true: 4}[k == 2]; r.Rate != want {
				t.Errorf("query %d declares %v/s, want %v", k, r.Rate, want)
			}
			got = append(got, fmt.Sprint(r.Sequence, r.First, r.Last))
		}
		want := []string{
			"7true false", "false false", "9true false", "7false false", "9false true", "7false true",
			"9223372036854775808true true",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
