package loadgen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Result is the result of a run.
type Result struct {
	Report *report.Report `json:"report"`
	// SendLag is the time from a query's scheduled instant to its sending. It shows whether the generator kept up.
	SendLag report.Percentiles `json:"send_lag"`
	// ClientRefused is the number of queries that were not sent because MaxOutstanding were under way. The report
	// counts them as refused.
	ClientRefused int64        `json:"client_refused"`
	Interrupted   bool         `json:"interrupted,omitempty"` // ctx ended before the whole workload was sent
	Errors        []ErrorCount `json:"errors,omitempty"`      // the most frequent first, at most 20
	Variants      []VariantUse `json:"-"`                     // of all apps
	// nil unless stage timings were asked for and the server sent them
	Stages []StageUse `json:"stages,omitempty"`

	run     *runner
	offered int
	span    time.Duration // of the whole run, including warm-up
}

// VariantUse is the share of an app's queries that one variant served. Accuracy is in [0, 1].
type VariantUse struct {
	App, Variant string
	Served       int64
	Accuracy     float64
}

// ErrorCount counts the queries that ended with the same error. Numbers in its text are replaced by #.
type ErrorCount struct {
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// JSON writes the result to w as indented JSON.
func (res *Result) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(res)
}

func (r *runner) result(offered int, elapsed time.Duration) *Result {
	span := r.opt.Duration
	if span <= 0 {
		span = time.Duration(r.arrivals[len(r.arrivals)-1].At) + 1
	}
	res := &Result{ClientRefused: r.refused, Interrupted: offered < len(r.arrivals), run: r, offered: offered}
	if res.Interrupted {
		span = min(span, max(elapsed, 1))
	}
	res.span = span
	span = max(span-r.opt.Warmup, 1)
	infos := make([]report.AppInfo, len(r.apps))
	for i, a := range r.apps {
		infos[i] = report.AppInfo{Name: a.Name, BestAccuracy: a.BestAccuracy, SLO: a.SLO}
	}
	rec := report.NewRecorder(infos, report.Options{
		Bucket: r.opt.Bucket, Warmup: serving.Time(r.opt.Warmup), Parts: r.opt.StageTimings,
	})
	lags := make([]time.Duration, 0, offered)
	type kind struct {
		outcome serving.Outcome
		message string
	}
	kinds := map[kind]int64{}
	for i := range offered {
		q := &r.queries[i]
		o := r.outcome(i)
		rec.Add(&o)
		lags = append(lags, q.lag)
		if q.message != serving.None {
			kinds[kind{q.outcome, maskDigits(r.messages.list[q.message])}]++
		}
	}
	for k, n := range kinds {
		res.Errors = append(res.Errors, ErrorCount{Outcome: k.outcome.String(), Message: k.message, Count: n})
	}
	slices.SortFunc(res.Errors, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome),
			cmp.Compare(a.Message, b.Message))
	})
	if len(res.Errors) > 20 {
		res.Errors = res.Errors[:20]
	}
	res.Report = rec.Report(report.Meta{Name: r.opt.Name, Seed: r.opt.Seed, Duration: span, Variants: r.variants.list})
	for _, a := range res.Report.Apps {
		for _, v := range a.Variants {
			res.Variants = append(res.Variants, VariantUse{
				App: a.Name, Variant: v.Name, Served: v.Served, Accuracy: v.Accuracy,
			})
		}
	}
	res.Stages = r.stages.list(r.apps)
	res.SendLag = report.PercentilesOf(lags)
	return res
}

// outcome returns the outcome of query i in the form of the report.
func (r *runner) outcome(i int) report.Outcome {
	a, q := &r.arrivals[i], &r.queries[i]
	return report.Outcome{
		Query: serving.QueryID(i + 1), App: a.App, Variant: serving.VariantID(q.variant), Outcome: q.outcome,
		Arrived: a.At,
		Done:    a.At.Add(q.latency), Deadline: deadline(a.At, a.Timeout, r.apps[a.App].SLO), Queue: q.queue,
		Inside: q.inside, Items: a.Items, Batch: q.batch, Accuracy: q.accuracy, Calibrated: q.certain,
		Label:      q.label,
		RightItems: q.rightItems, JudgedItems: q.judgedItems,
	}
}

// WriteRecords writes every query that was offered as a line of JSON, in the order of the schedule. ReadReport and a
// replay read it.
func (res *Result) WriteRecords(w io.Writer) error {
	r := res.run
	rw, err := workload.NewRecordWriter(w, workload.RecordHeader{
		Name: r.opt.Name, Seed: r.opt.Seed, DurationNS: int64(res.span),
	})
	if err != nil {
		return err
	}
	for i := range res.offered {
		a, q := &r.arrivals[i], &r.queries[i]
		sample := int32(r.sample(i) % r.apps[a.App].Samples.Count)
		rec := workload.Record{
			AtNS: int64(a.At), App: r.apps[a.App].Name, Items: a.Items, Length: a.Length, Priority: a.Priority,
			TimeoutNS: int64(a.Timeout), MinAccuracy: a.MinAccuracy, Stream: a.Stream,
			Sample: &sample, Outcome: q.outcome.String(), LatencyNS: int64(q.latency), LagNS: int64(max(q.lag, 0)),
			QueueNS: int64(max(q.queue, 0)), InsideNS: int64(q.inside),
			Batch: max(q.batch, 0), Accuracy: q.accuracy, Calibrated: q.certain, Stages: q.stages,
			Lengths: q.lengths,
		}
		if a.Variant != serving.None && r.opt.Version != nil {
			rec.Pinned = r.opt.Version(a.Variant)
		}
		if q.variant != serving.None {
			rec.Variant = r.variants.list[q.variant]
		}
		if q.label != report.LabelUnknown {
			right := q.label == report.LabelRight
			rec.Right = &right
			if q.judgedItems != 1 {
				rec.RightItems, rec.JudgedItems = q.rightItems, q.judgedItems
			}
		}
		if q.message != serving.None {
			rec.Error = r.messages.list[q.message]
		}
		if err := rw.Write(&rec); err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	return rw.Flush()
}
