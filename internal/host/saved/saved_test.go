package saved

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// crowded is a simulated run of the example fleet with more than it can serve, with its journal and report.
func crowded(t *testing.T, dir string) *report.Report {
	t.Helper()
	o, err := host.Open("../../../examples/fleet.yaml", host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o, err = o.WithSystem("sluice"); err != nil {
		t.Fatal(err)
	}
	profiled, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := profiled.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	load := &workload.Spec{Seed: 3, DurationS: 20, Apps: []workload.AppSpec{
		{App: "images", Rates: segments(t, "0:200,8:9500,14:100")}, {App: "text", Rate: 30},
	}}
	r, err := p.Simulate(host.Simulation{Seed: 3, PlanDelay: host.DefaultPlanDelay, NoBound: true,
		Journal: filepath.Join(dir, "run.journal")}, "crowded", load)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.JSON(f); err != nil {
		t.Fatal(err)
	}
	return r
}

// asked returns the JSON of an answer of the dashboard.
func asked(t *testing.T, h http.Handler, path string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
}

// The numbers of the dashboard are those of the report: both count the same queries by the same definitions, the report
// from outcomes, the dashboard from decisions.
func TestDashboardOfAJournalAgreesWithTheReport(t *testing.T) {
	dir := t.TempDir()
	r := crowded(t, dir)
	s, err := OpenSaved(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Notice() != "" {
		t.Fatal(s.Notice())
	}
	h := s.Handler()
	var o board.Overview
	asked(t, h, "/api/v1/overview", &o)
	near := func(what string, got *float64, want, tolerance float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > tolerance*math.Abs(want) {
			t.Errorf("%s: %v, the report has %v", what, got, want)
		}
	}
	// Five digits are shown.
	const digits = 1e-4
	for k := range r.Apps {
		want, got := &r.Apps[k], &o.Apps[k]
		w := &got.Hour
		if int64(w.Offered) != want.Offered || int64(w.Served) != want.Served || int64(w.Late) != want.Late ||
			int64(w.Dropped) != want.Dropped || int64(w.Refused) != want.Refused {
			t.Errorf("%s: %+v, the report has %+v", got.Name, w, want.Summary)
		}
		near(got.Name+" violations", w.Violation, want.ViolationRatio, digits)
		near(got.Name+" accuracy", w.Accuracy, *want.EffectiveAccuracy, digits)
		near(got.Name+" burn", got.BurnHour, want.ViolationRatio/(1-want.SLOPercentile/100), digits)
		// Half a bucket of latency is 9 %.
		near(got.Name+" p50", w.P50, want.Latency.P50, 0.1)
		near(got.Name+" p99", w.P99, want.Latency.P99, 0.1)
		var x struct {
			Series board.Series `json:"series"`
		}
		asked(t, h, "/api/v1/series?app="+got.Name, &x)
		sum := uint32(0)
		for _, n := range x.Series.Offered {
			sum += n
		}
		if int64(sum) != want.Offered {
			t.Errorf("%s: %d queries by second, %d in all", got.Name, sum, want.Offered)
		}
	}
	if r.Overall.Dropped == 0 {
		t.Error("the run was not crowded: nothing was compared")
	}
	near("cost", &o.CostPerHour, *r.Overall.CostPerHour, digits)
	var minutes struct {
		Series board.Series `json:"series"`
	}
	asked(t, h, "/api/v1/series", &minutes)
	dollars := 0.0
	for _, x := range minutes.Series.Dollars {
		dollars += x
	}
	near("dollars", &dollars, *r.Overall.CostPerHour*float64(len(minutes.Series.Dollars))/3600, 0.01)
	var missed struct {
		Missed []board.Missed `json:"missed"`
	}
	asked(t, h, "/api/v1/queries?app=images&limit=1", &missed)
	var way struct {
		Query uint64 `json:"query"`
		Text  string `json:"text"`
	}
	asked(t, h, "/api/v1/queries/"+jsonText(t, missed.Missed[0].Query), &way)
	if !strings.Contains(way.Text, `of app "images"`) {
		t.Errorf("the way of a query reads %q", way.Text)
	}
	var plans struct {
		Plans []board.PlanLine `json:"plans"`
	}
	asked(t, h, "/api/v1/plans", &plans)
	if len(plans.Plans) < 2 || plans.Plans[len(plans.Plans)-1].Why != "made before the start" {
		t.Errorf("plans are %+v", plans.Plans)
	}
	var plan board.PlanView
	asked(t, h, "/api/v1/plans/"+jsonText(t, plans.Plans[0].Number), &plan)
	instances := 0
	for _, row := range plan.Rows {
		instances += row.Instances
	}
	if instances != plan.Instances || instances == 0 {
		t.Errorf("the rows of a plan have %d instances, it has %d", instances, plan.Instances)
	}
	var figures struct{ Reports []savedReport }
	asked(t, h, "/api/v1/figures", &figures)
	if len(figures.Reports) != 1 || figures.Reports[0].Report.Overall.Offered != r.Overall.Offered {
		t.Errorf("%d reports", len(figures.Reports))
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A played journal is seen at work: after a part of its time, the board has a part of its queries.
func TestPlayedJournal(t *testing.T) {
	dir := t.TempDir()
	r := crowded(t, dir)
	s, err := OpenSaved(filepath.Join(dir, "run.journal"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if o := s.board.Overview(); o.Hour.Offered != 0 {
		t.Errorf("%d queries before it is played", o.Hour.Offered)
	}
	begun := time.Now()
	if err := s.Play(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	if o := s.board.Overview(); int64(o.Hour.Offered) != r.Overall.Offered {
		t.Errorf("%d queries at its end, of %d", o.Hour.Offered, r.Overall.Offered)
	}
	if took := time.Since(begun); took < 20*time.Second/1000 {
		t.Errorf("20 s were played 1000 times as fast in %v", took)
	}
}

// Files that are nothing of all that are named with what would be something.
func TestOpenSavedRefuses(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.json")
	if err := os.WriteFile(other, []byte(`{"a": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		other: "neither a journal nor a report", dir: "holds no journal", filepath.Join(dir, "none"): "no such file",
	} {
		if _, err := OpenSaved(path, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// What commands print as JSON is shown: one report, a list of them, and those that an object has, named after where
// they are.
func TestSavedReportsOfCommands(t *testing.T) {
	one := `{"duration_s":1,"apps":[{"name":"a"}]}`
	two := `{"name":"60-per-s","duration_s":1,"apps":[{"name":"a"}]}`
	for _, c := range []struct{ text, want string }{
		{one, "[r]"}, {"[" + one + "]", "[r]"}, {"[" + one + "," + two + "]", "[r: 1 r: 60-per-s]"},
		{`{"simulated":` + one + `,"live":` + two + `,"differences":[]}`, "[r: live r: simulated]"},
		{`[{"report":` + one + `,"send_lag":{}}]`, "[r]"},
		{`{"live":{"report":` + one + `},"files":["x"]}`, "[r: live]"},
	} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSaved(path, 0)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var names []string
		for _, r := range s.reports {
			names = append(names, r.Name)
		}
		if got := fmt.Sprint(names); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// Of a journal that was cut off, what is whole is shown, replayed and explained, and said to be less than the run.
func TestCutJournalIsShown(t *testing.T) {
	dir := t.TempDir()
	crowded(t, dir)
	path := filepath.Join(dir, "run.journal")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, st.Size()/2); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSaved(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if o := s.board.Overview(); o.Hour.Offered == 0 || !strings.Contains(s.Notice(), "is cut off in line") {
		t.Errorf("%d queries, %q", o.Hour.Offered, s.Notice())
	}
	r, err := host.Replay(path)
	if err != nil || r.Difference != nil || r.Cut == nil || r.Steps == 0 {
		t.Errorf("replayed as %+v, %v", r, err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, err := steps.ExplainJournal(f, 5); err != nil || x.Query != 5 {
		t.Errorf("explained as %+v, %v", x, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := steps.ExplainJournal(f, 1<<40); err == nil || !strings.Contains(err.Error(), "is cut off") {
		t.Errorf("a query that is not there: %v", err)
	}
	// Beside a whole one it does not keep the folder from being shown, and is named.
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	both, err := OpenSaved(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	if len(both.reports) != 1 || !strings.Contains(both.Notice(), "is cut off in line 1") {
		t.Errorf("%d reports, %q", len(both.reports), both.Notice())
	}
}

func segments(t *testing.T, text string) []workload.Segment {
	t.Helper()
	out, err := workload.ParseRates(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What could have begun instead of a batch begins with the batch itself: as many queries as its explanation names, of
// the same size, and never more of them in time than there are. Of the others, those of a batch that was possible were
// free, loaded and in time.
func TestComparisonsOfAJournal(t *testing.T) {
	dir := t.TempDir()
	crowded(t, dir)
	s, err := OpenSaved(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := s.Handler()
	compared, fuller := 0, 0
	for query := 600; query < 40_000; query += 650 { // before the rise, and while there are too many
		var q struct {
			Runs []struct {
				Variant    string            `json:"variant"`
				Items      int               `json:"items"`
				With       []int             `json:"with"`
				ExpectedMS float64           `json:"expected_ms"`
				Compared   *board.Comparison `json:"compared"`
			} `json:"runs"`
		}
		asked(t, h, fmt.Sprintf("/api/v1/queries/%d", query), &q)
		for _, r := range q.Runs {
			if r.Compared == nil {
				t.Fatalf("query %d: the batch is not known", query)
			}
			c := r.Compared.Candidates[0]
			if !c.Chosen || c.Variant != r.Variant || c.Items != r.Items || c.Queries != 1+len(r.With) ||
				math.Abs(*c.RunMS-r.ExpectedMS) > 1e-3*r.ExpectedMS || r.Compared.Waiting < c.Queries {
				t.Errorf("query %d ran as %+v, compared as %+v of %d", query, r, c, r.Compared.Waiting)
			}
			for _, x := range r.Compared.Candidates[1:] {
				if x.Chosen || x.WhyNot == "" || x.InTime > x.Queries || x.Queries > r.Compared.Waiting {
					t.Errorf("query %d: %+v", query, x)
				}
				if strings.HasPrefix(x.WhyNot, "possible:") && (x.WaitMS > 0 || *x.SpareMS < 0) {
					t.Errorf("query %d: not possible: %+v", query, x)
				}
				if x.Queries > c.Queries {
					fuller++
				}
			}
			compared++
		}
	}
	if compared == 0 || fuller == 0 {
		t.Errorf("%d batches were compared, with %d fuller ones: too few to say something", compared, fuller)
	}
}
