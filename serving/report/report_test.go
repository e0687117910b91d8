package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const msT = serving.Time(time.Millisecond)

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is absent, want %v", what, want)
	} else if math.Abs(*got-want) > 1e-12*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

// The metrics of a small run are those computed by hand.
func TestByHand(t *testing.T) {
	slo := serving.SLO{Latency: 100 * time.Millisecond, Percentile: 95}
	r := NewRecorder([]AppInfo{{Name: "a", BestAccuracy: 0.9, SLO: slo}, {Name: "b", BestAccuracy: 0.8}}, Options{})
	add := func(app serving.AppID, out serving.Outcome, at, latency serving.Time, acc float64, batch int32,
		label int8) {
		r.Add(&Outcome{
			App: app, Outcome: out, Arrived: at, Done: at + latency, Deadline: at + 100*msT,
			Queue: time.Duration(latency / 2), Items: 1, Batch: batch, Accuracy: acc, Label: label,
		})
	}
	add(0, serving.Served, 0, 50*msT, 0.9, 2, LabelRight)
	add(0, serving.Served, 0, 50*msT, 0.9, 2, LabelWrong)
	add(0, serving.Served, 500*msT, 100*msT, 0.6, 1, LabelUnknown) // exactly in time
	add(0, serving.Served, 12000*msT, 101*msT, 0.7, 1, LabelRight) // late
	add(0, serving.Dropped, 12000*msT, 100*msT, 0, 0, LabelUnknown)
	add(0, serving.Cancelled, 12000*msT, 10*msT, 0, 0, LabelUnknown)
	add(1, serving.Served, 13000*msT, 20*msT, 0.8, 1, LabelUnknown)
	add(1, serving.Refused, 13000*msT, 0, 0, 0, LabelUnknown)
	add(1, serving.Failed, 13000*msT, 30*msT, 0, 0, LabelUnknown)
	rep := r.Report(Meta{
		Name: "hand", Duration: 20 * time.Second, Usage: &Usage{
			Dollars: 0.01, Busy: 5 * time.Second, Slots: 40 * time.Second,
		},
	})

	o := &rep.Overall
	if o.Offered != 9 || o.Served != 5 || o.InTime != 4 || o.Late != 1 || o.Dropped != 1 || o.Refused != 1 ||
		o.Failed != 1 || o.Cancelled != 1 {
		t.Errorf("counts: %+v", o)
	}
	near(t, "offered rate", &o.OfferedRate, 9.0/20)
	near(t, "throughput", &o.Throughput, 5.0/20)
	near(t, "goodput", &o.Goodput, 4.0/20)
	near(t, "violations", &o.ViolationRatio, 4.0/8)
	near(t, "finish rate", &o.FinishRate, 4.0/8)
	near(t, "accuracy", o.EffectiveAccuracy, (0.9+0.9+0.6+0.7+0.8)/5)
	near(t, "accuracy in time", o.SatisfiedAccuracy, (0.9+0.9+0.6+0.8)/4)
	near(t, "normalised", o.NormalisedAccuracy, (1+1+0.6/0.9+0.7/0.9+1)/5)
	// Windows by arrival: [0,10) lost (0+0+0.3)/3, [10,20) lost (0.2+0)/2.
	near(t, "drop", o.MaxAccuracyDrop, (0.9*3-(0.9+0.9+0.6))/3)
	near(t, "normalised drop", o.NormalisedAccuracyDrop, 1-(1+1+0.6/0.9)/3)
	near(t, "measured", o.MeasuredAccuracy, 2.0/3)
	near(t, "mean latency", &o.Latency.Mean, (50+50+100+101+20)/5.0)
	near(t, "p50", &o.Latency.P50, 50)
	near(t, "p90", &o.Latency.P90, 101)
	near(t, "queue p50", &o.Queue.P50, 25)
	near(t, "mean batch", o.MeanBatch, 5.0/4) // batches of 2, 1, 1, 1
	near(t, "cost", o.CostPerHour, 0.01/(20.0/3600))
	near(t, "cost per million", o.CostPerMillion, 0.01/5*1e6)
	near(t, "utilisation", o.Utilisation, 5.0/40)

	a := &rep.Apps[0]
	near(t, "a: attained", a.AttainedMS, 101)
	near(t, "a: drop", a.MaxAccuracyDrop, 0.2) // the window with the single answer of 0.7
	near(t, "a: violations", &a.ViolationRatio, 2.0/5)
	if a.CostPerHour != nil || rep.Apps[1].MeasuredAccuracy != nil {
		t.Error("a metric that is not known is present")
	}

	if len(rep.Series) != 14 {
		t.Fatalf("%d points, want 14", len(rep.Series))
	}
	if p := rep.Series[0]; p.Offered != 3 || p.Served != 3 || p.Violations() != 0 || p.AtS != 0 {
		t.Errorf("first second: %+v", p)
	}
	if p := rep.Series[12]; p.Offered != 3 || p.Served != 1 || p.Late != 1 || p.Dropped != 1 || p.Cancelled != 1 ||
		p.Violations() != 2 {
		t.Errorf("13th second: %+v", p)
	}
	if p := rep.Series[5]; p.Accuracy != nil || p.P99 != nil {
		t.Errorf("an empty second knows %+v", p)
	}
}

func TestSeriesAddsUp(t *testing.T) {
	rep := random(3, 20_000, Options{}).Report(Meta{Duration: 30 * time.Second})
	var offered, served, violations, cancelled int64
	for _, p := range rep.Series {
		offered += p.Offered
		served += p.Served
		violations += p.Violations()
		cancelled += p.Cancelled
	}
	o := &rep.Overall
	if offered != o.Offered || served != o.Served || cancelled != o.Cancelled || violations != o.Late+o.Dropped+
		o.Refused+o.Failed {
		t.Errorf("series adds up to %d offered, %d served, %d violations, %d cancelled; overall is %+v", offered,
			served, violations, cancelled, o)
	}
	if d := o.FinishRate + o.ViolationRatio - 1; math.Abs(d) > 1e-12 {
		t.Errorf("finish rate and violation ratio add up to %v", 1+d)
	}
	if len(rep.Variants) != 3 {
		t.Fatalf("variants %+v, want three", rep.Variants)
	}
	share := 0.0
	for i, v := range rep.Variants {
		n := int64(0)
		for _, p := range rep.Series {
			if p.ByVariant != nil {
				n += p.ByVariant[i]
			}
		}
		for _, a := range rep.Apps {
			n -= a.Variants[i].Served
		}
		if n != 0 {
			t.Errorf("%s: the series and the apps differ by %d", v.Name, n)
		}
		share += v.Share
	}
	if math.Abs(share-1) > 1e-12 {
		t.Errorf("shares add up to %v", share)
	}
	var sum Summary
	for _, a := range rep.Apps {
		sum.Offered += a.Offered
		sum.Served += a.Served
	}
	if sum.Offered != o.Offered || sum.Served != o.Served {
		t.Error("apps do not add up to the whole")
	}
}

// random returns a recorder with n outcomes of two apps over 30 s.
func random(seed uint64, n int, opt Options) *Recorder {
	r := rand.New(rand.NewPCG(seed, 1))
	rec := NewRecorder([]AppInfo{{Name: "a", BestAccuracy: 0.9}, {Name: "b", BestAccuracy: 0.7}}, opt)
	for i := range n {
		at := serving.Time(float64(i) / float64(n) * 30e9)
		latency := serving.Time(20e6 * math.Exp(r.NormFloat64()))
		o := Outcome{
			Query: serving.QueryID(i), App: serving.AppID(r.IntN(2)), Arrived: at, Done: at + latency,
			Deadline: at + 60e6,
			Queue:    time.Duration(latency / 3), Items: 1 + r.Int32N(3), Batch: 4, Accuracy: 0.5 + r.Float64()*0.2,
			Variant: serving.VariantID(r.IntN(4) - 1), Label: int8(r.IntN(3) - 1),
		}
		if r.IntN(10) == 0 {
			o.Outcome = serving.Outcome(r.IntN(serving.Outcomes))
		}
		rec.Add(&o)
	}
	return rec
}

func TestSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := random(5, 5000, Options{}).Report(Meta{Duration: 30 * time.Second}).JSON(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two reports of the same outcomes differ")
	}
	var back Report
	if err := json.Unmarshal(a.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	var c bytes.Buffer
	if err := back.JSON(&c); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), c.Bytes()) {
		t.Error("a report read back from JSON differs")
	}
}

func TestPercentiles(t *testing.T) {
	d := dist{limit: 1000}
	for _, v := range []int64{15, 20, 35, 40, 50} {
		d.add(v)
	}
	for p, want := range map[float64]time.Duration{5: 15, 20: 15, 20.1: 20, 30: 20, 40: 20, 50: 35, 100: 50} {
		if got := d.percentile(p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
	hundred := dist{limit: 1000}
	for i := range 1000 {
		hundred.add(int64(i + 1))
	}
	// 99.9/100*1000 is 999.0000000000001 in floating point.
	if got := hundred.percentile(99.9); got != 999 {
		t.Errorf("percentile 99.9 of 1..1000 is %d, want 999", got)
	}
}

func TestHistogramError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	exact, rough, first, second := dist{limit: 1 << 20}, dist{limit: 10}, dist{limit: 10}, dist{limit: 1 << 20}
	for i := range 200_000 {
		v := int64(math.Exp(r.Float64() * 30)) // 1 ns to three hours
		exact.add(v)
		rough.add(v)
		if i%2 == 0 {
			first.add(v)
		} else {
			second.add(v)
		}
	}
	first.merge(&second)
	if rough.exact() || first.exact() || !exact.exact() {
		t.Fatal("the limit was not kept")
	}
	for p := 0.05; p <= 100; p += 0.05 {
		want := float64(exact.percentile(p))
		if got := float64(rough.percentile(p)); math.Abs(got-want) > want/1000 {
			t.Fatalf("percentile %v is %v, want %v within 0.1 %%", p, got, want)
		}
		if a, b := rough.percentile(p), first.percentile(p); a != b {
			t.Fatalf("percentile %v is %v after a merge, want %v", p, b, a)
		}
	}
	if rough.max != exact.max || rough.percentile(100) != exact.percentile(100) || rough.mean() != exact.mean() {
		t.Error("the mean or the maximum is not exact")
	}
}

func TestCellsCoverEveryValue(t *testing.T) {
	for _, v := range []int64{0, 1, 511, 512, 513, 1023, 1024, 1025, 1 << 40, math.MaxInt64} {
		o, i := place(v)
		if m := middle(o, i); math.Abs(float64(m)-float64(v)) > float64(v)/1024 {
			t.Errorf("%d lies in a cell whose middle is %d", v, m)
		}
	}
}

func TestWarmupAndOddOutcomes(t *testing.T) {
	r := NewRecorder(nil, Options{Warmup: 1000, Bucket: 100})
	r.Add(&Outcome{App: 0, Arrived: 999, Done: 2000})
	r.Add(&Outcome{App: -1, Arrived: 1000, Done: 2000})
	r.Add(&Outcome{App: 0, Arrived: 1000, Done: 2000, Outcome: 77})
	if rep := r.Report(Meta{}); rep.Overall.Offered != 0 || len(rep.Apps) != 0 {
		t.Errorf("%+v", rep.Overall)
	}
	r.Add(&Outcome{App: 1, Arrived: 1000, Done: 2000, Deadline: 3000})
	r.Add(&Outcome{App: 1, Arrived: 1000, Done: serving.Never, Deadline: 3000})
	rep := r.Report(Meta{Duration: time.Second})
	if rep.Overall.Offered != 2 || len(rep.Apps) != 2 || rep.Apps[1].Name != "app 1" || len(rep.Series) != maxBuckets {
		t.Errorf("%d offered, %d apps, %d points", rep.Overall.Offered, len(rep.Apps), len(rep.Series))
	}
	if rep.Series[0].Offered != 2 || rep.Series[10].Served != 1 {
		t.Error("times do not count from the end of the warm-up")
	}
}

func TestEmptyReport(t *testing.T) {
	rep := NewRecorder([]AppInfo{{Name: "a"}}, Options{}).Report(Meta{})
	var b bytes.Buffer
	if err := rep.JSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := rep.Table(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "null") {
		t.Errorf("an empty report has holes:\n%s", b.String())
	}
}

func TestCompare(t *testing.T) {
	a, b := &Report{}, &Report{}
	a.Overall = Summary{
		Throughput: 100, ViolationRatio: 0.05, EffectiveAccuracy: ptr(0.9), Served: 1, Latency: Percentiles{P50: 10},
	}
	b.Overall = Summary{Throughput: 98, ViolationRatio: 0.06, Served: 1, Latency: Percentiles{P50: 12}}
	d := Compare(a, b)
	near(t, "throughput", Find(d, "throughput").Percent, -2)
	near(t, "violations", Find(d, "violation_ratio").Points, 1)
	near(t, "p50", Find(d, "latency_p50_ms").Percent, 20)
	if x := Find(d, "effective_accuracy"); x.Points != nil || x.B != nil {
		t.Errorf("a missing side compares as %+v", x)
	}
	if Find(d, "cost_per_hour") != nil {
		t.Error("a metric that nobody has was compared")
	}
	var out bytes.Buffer
	if err := SideBySide(&out, []string{"live", "simulated"}, []*Report{a, b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-2.00 %", "+1.00 pt", "+20.00 %", "difference", "90.00 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	x, y := random(1, 500, Options{}).Report(Meta{Variants: []string{"big", "small"}}),
		random(2, 500, Options{}).Report(Meta{Variants: []string{"big", "small"}})
	if err := SideBySide(&out, []string{"live", "simulated"}, []*Report{x, y}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"live share", "simulated share", "big", "small", "variant 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	t.Logf("\n%s", out.String())
	if err := SideBySide(&out, nil, []*Report{a}); err == nil {
		t.Error("a report without a name was accepted")
	}
}

func TestTableLinesUp(t *testing.T) {
	rep := random(2, 3000, Options{}).Report(Meta{Name: "run", Duration: 30 * time.Second})
	var b bytes.Buffer
	if err := rep.Table(&b); err != nil {
		t.Fatal(err)
	}
	if err := rep.VariantTable(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	width := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "run") || strings.HasPrefix(l, "variant") {
			width = len(l)
		}
		if l != "" && len(l) != width {
			t.Errorf("%q is %d wide, want %d", l, len(l), width)
		}
	}
	if !strings.Contains(b.String(), "variant 2") {
		t.Error("the variants are missing")
	}
	if !strings.HasPrefix(lines[0], "run, 30 s") || !strings.Contains(b.String(), "SLO violations") {
		t.Errorf("table:\n%s", b.String())
	}
	t.Logf("\n%s", b.String())
}

// More apps than have a column each get a row each, the one with most violations first.
func TestTableOfManyApps(t *testing.T) {
	r := &Report{DurationS: 1}
	for k := range mostColumns + 1 {
		r.Apps = append(r.Apps, App{Name: fmt.Sprint("app", k), Summary: Summary{ViolationRatio: float64(k) / 10}})
	}
	var b bytes.Buffer
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if len(line) > 120 {
			t.Errorf("%d wide: %q", len(line), line)
		}
	}
	worst, best := strings.Index(b.String(), "\napp8 "), strings.Index(b.String(), "\napp0 ")
	if worst < 0 || best < worst || !strings.Contains(b.String(), "80.00 %") {
		t.Errorf("the worst app is not the first of:\n%s", b.String())
	}
	for _, name := range ofApps {
		if !slices.ContainsFunc(metrics, func(m Metric) bool { return m.Name == name }) {
			t.Errorf("no metric %q", name)
		}
	}
}

func TestMetricNamesAreUnique(t *testing.T) {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if n := len(slices.Compact(slices.Clone(names))); n != len(names) {
		t.Error("two metrics share a name")
	}
}

func BenchmarkAdd(b *testing.B) {
	rec := NewRecorder([]AppInfo{{Name: "a", BestAccuracy: 0.9}}, Options{})
	o := Outcome{Items: 1, Batch: 4, Accuracy: 0.8, Label: LabelUnknown}
	i := serving.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		i++
		o.Arrived = i * 10_000 // 100,000 queries/s
		o.Done = o.Arrived + 5_000_000 + (i*7919)%3_000_000
		o.Deadline = o.Arrived + 6_000_000
		rec.Add(&o)
	}
}

// A table says on a line for each reason how often plans failed, and JSON lists it; both say nothing where none did.
func TestPlanFailures(t *testing.T) {
	text := func(r *Report) string {
		var b bytes.Buffer
		if err := errors.Join(r.Table(&b), SideBySide(&b, []string{"live", "simulated"}, []*Report{{}, r}),
			r.JSON(&b)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	r := NewRecorder([]AppInfo{{Name: "a"}}, Options{}).Report(Meta{})
	if s := text(r); strings.Contains(s, "failed,") || strings.Contains(s, "plan_failures") {
		t.Errorf("nothing failed, and the report says\n%s", s)
	}
	var list []PlanFailure
	for at, why := range []string{"no room", "no time", "no room"} {
		list = AddPlanFailure(list, "planning failed", serving.Time(at+2)*1e9, why)
	}
	r = NewRecorder([]AppInfo{{Name: "a"}}, Options{}).Report(Meta{
		PlanFailures: AddPlanFailure(list, "the plan is not valid", 9e9, "0 slots"),
	})
	s := text(r)
	for _, want := range []string{
		"\nplanning failed 3 times, first after 2 s: no room\nthe plan is not valid once, first after 9 s: 0 slots\n",
		"\nsimulated: planning failed 3 times, first after 2 s: no room\n", `"plan_failures": [`, `"first_s": 9`,
	} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing in\n%s", want, s)
		}
	}
}

// Variants of several apps that have one name are one row with what all of them served.
func TestSharesOfOneNameAreOneRow(t *testing.T) {
	var b strings.Builder
	r := &Report{Variants: []VariantUse{
		{Name: "small", Share: 0.25}, {Name: "large", Share: 0.5}, {Name: "small", Share: 0.25},
	}}
	if err := variantTable(&b, []string{"a"}, []*Report{r}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "50.00 %"); n != 2 {
		t.Errorf("%s\n%d rows of half, want 2", b.String(), n)
	}
}
