package loadgen

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// ReadReport computes the report of a recorded run from the file that WriteRecords wrote. apps must be those of the
// run, in the order of their ids. A query of another app is an error. Queries without a recorded outcome are left out.
func ReadReport(r io.Reader, apps []report.AppInfo, opt report.Options) (*report.Report, error) {
	rr, err := workload.NewRecordReader(r)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]serving.AppID, len(apps))
	for i, a := range apps {
		ids[a.Name] = serving.AppID(i)
	}
	rec := report.NewRecorder(apps, opt)
	var variants textIDs
	for n := serving.QueryID(1); ; n++ {
		q, err := rr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		app, ok := ids[q.App]
		if !ok {
			return nil, fmt.Errorf("recorded run: query %d is for app %q, which is not one of the apps", n, q.App)
		}
		outcome, ok := serving.ParseOutcome(q.Outcome)
		if !ok {
			continue
		}
		o := report.Outcome{
			Query: n, App: app, Variant: serving.None, Outcome: outcome, Arrived: serving.Time(q.AtNS),
			Done:     serving.Time(q.AtNS + q.LatencyNS),
			Deadline: deadline(serving.Time(q.AtNS), time.Duration(q.TimeoutNS), apps[app].SLO),
			Queue:    time.Duration(q.QueueNS), Inside: time.Duration(q.InsideNS),
			Items: max(1, q.Items), Batch: q.Batch, Accuracy: q.Accuracy, Calibrated: q.Calibrated,
			Label: report.LabelUnknown,
		}
		if q.Variant != "" {
			o.Variant = serving.VariantID(variants.id(q.Variant))
		}
		if q.Right != nil {
			o.Label = report.LabelWrong
			if *q.Right {
				o.Label = report.LabelRight
			}
			o.RightItems, o.JudgedItems = min(q.RightItems, q.JudgedItems), q.JudgedItems
		}
		rec.Add(&o)
	}
	h := rr.Header()
	return rec.Report(report.Meta{
		Name: h.Name, Seed: h.Seed, Duration: max(0, time.Duration(h.DurationNS)-time.Duration(opt.Warmup)),
		Variants: variants.list,
	}), nil
}

// deadline returns the client's deadline if it has one, else that of the objective, else serving.Never.
func deadline(at serving.Time, timeout time.Duration, slo serving.SLO) serving.Time {
	switch {
	case timeout > 0:
		return at.Add(timeout)
	case slo.Latency > 0:
		return at.Add(slo.Latency)
	}
	return serving.Never
}
