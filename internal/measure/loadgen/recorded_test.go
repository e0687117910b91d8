package loadgen

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// The report computed from the records equals the report of the run.
func TestReadReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) {
			if n%7 == 0 {
				return nil, &Error{Outcome: serving.Refused, Message: "full"}
			}
			if err := sleep(ctx, time.Duration(n%13)*10*time.Millisecond); err != nil {
				return nil, err
			}
			a := echo(r)
			a.Accuracy = 0.5 + float64(n%5)/10
			return a, nil
		}}
		for _, warmup := range []time.Duration{0, 500 * time.Millisecond} {
			res, err := Run(t.Context(), f, oneApp(numbers(5)), even(500, 5*time.Millisecond), Options{
				Name: "live", Seed: 3, Duration: 3 * time.Second, Warmup: warmup, pacer: coarse,
			})
			if err != nil {
				t.Fatal(err)
			}
			var records, want, got bytes.Buffer
			if err := res.WriteRecords(&records); err != nil {
				t.Fatal(err)
			}
			text := records.String()
			infos := []report.AppInfo{
				{Name: "digits", SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 95}, BestAccuracy: 0.95},
			}
			again, err := ReadReport(&records, infos, report.Options{Warmup: serving.Time(warmup)})
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Report.JSON(&want); err != nil {
				t.Fatal(err)
			}
			if err := again.JSON(&got); err != nil {
				t.Fatal(err)
			}
			if want.String() != got.String() {
				t.Errorf("warm-up %v: read back:\n%s\nwant:\n%s", warmup, got.String(), want.String())
			}
			infos[0].Name = "other"
			if _, err := ReadReport(strings.NewReader(text), infos, report.Options{}); err == nil ||
				!strings.Contains(err.Error(), "digits") {
				t.Errorf("a run of another app: %v", err)
			}
		}
	})
}
