package cli

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/host/demo"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/serving/report"
)

// sharedDemo serves two apps and a graph that share the machine.
func sharedDemo(s *demoScreen, setting demo.Setting) error {
	d := &demo.Shared{}
	d.Setting = setting
	d.Objective = demo.SharedObjective
	opened, profiled, planned, err := s.plan(&d.Setting, d.Build)
	if err != nil {
		return err
	}
	spec, err := d.Load(profiled)
	if err != nil {
		return err
	}
	s.say("3. load: %v of queries to three apps that share %d of the machine's cores. First the camera gets more,\n"+
		"   then scenes do, which grow from %d digits to %d, then the uploads.\n",
		d.Length, len(opened.Spec().Workers), demo.QuietScene, demo.BusyScene)
	for a, x := range spec.Apps {
		low, high := x.Rates[0].Rate, 0.0
		for _, r := range x.Rates {
			high = max(high, r.Rate)
		}
		s.say("   %-8s %5.1f to %5.1f queries/s; it %s\n", x.App, low, high, demo.About[a])
	}
	var wrong error
	live, err := d.Drive(s.Context, planned, s.serverOptions(opened), &spec,
		func(l *load.Loader) { wrong = d.Prepare(l) }, func(*server.Server) {})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	s.say("4. prediction: the same queries in the simulator, also with the systems of papers\n")
	s.quiet = true // what other systems cannot do here is not what is shown
	predicted, err := d.Predict(planned)
	if err != nil {
		return err
	}
	other, err := d.BestOfPapers(s.Context, profiled)
	if err != nil {
		return err
	}
	return s.sharedOutcome(d, live, predicted, other)
}

// sharedOutcome prints the measured run beside the predicted one, and beside that of the best system of a paper.
func (s *demoScreen) sharedOutcome(d *demo.Shared, live *loadgen.Result, predicted, other *report.Report) error {
	s.bar.clear()
	names := []string{"live", "simulated", other.Name + ", simulated"}
	reports := []*report.Report{live.Report, predicted, other}
	written, err := saveReports(d.Dir, "", []string{"live", "simulated", other.Name}, reports)
	if err != nil {
		return err
	}
	if err := drawShared(d, reports); err != nil {
		return err
	}
	result := sharedResult(d.Length, reports) + disturbed(live.SendLag.P99)
	if s.asJSON {
		return writeJSON(s.Stdout, map[string]any{
			"result": result, "live": live, "simulated": predicted, "best_of_papers": other,
			"differences": report.Compare(live.Report, predicted), "files": written,
		})
	}
	fmt.Fprintf(s.Stdout, "\n%s\n\n", result)
	if err := report.SideBySide(s.Stdout, names, reports); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "\n   %-8s %24s %24s %24s\n", "app", names[0], names[1], names[2])
	for a := range live.Report.Apps {
		fmt.Fprintf(s.Stdout, "   %-8s", live.Report.Apps[a].Name)
		for _, r := range reports {
			x := &r.Apps[a].Summary
			fmt.Fprintf(s.Stdout, " %24s", fmt.Sprintf("%.2f %%, %.2f %% missed", accurate(x), 100*x.ViolationRatio))
		}
		fmt.Fprintln(s.Stdout)
	}
	if err := report.PartTable(s.Stdout, names[:2], live.Report, predicted); err != nil {
		return err
	}
	printSending(s.Stdout, live)
	fmt.Fprintln(s.Stdout)
	s.written(&d.Setting, written, other.Name)
	return nil
}

// drawShared draws the picture of the demonstration.
func drawShared(d *demo.Shared, reports []*report.Report) error {
	story := plot.Story{
		Title: "sluice demo: load rises, smaller models answer, promises are kept",
		Lines: []string{
			"Three apps share a machine. While there is time, each query gets the most accurate model. " +
				"When there is not, smaller models answer, and every app still answers in time.",
			"Left: what was measured. Middle: what the simulator says of the same queries. " +
				"Right: what the best of the published systems does with them.",
		},
		Apps:    demo.About,
		Columns: []string{"measured", "predicted", "published system: " + reports[2].Name + ", predicted"},
		Ladders: demo.Ladders,
	}
	for _, x := range d.Events() {
		story.Spans = append(story.Spans, plot.Span{From: x.From.Seconds(), To: x.To.Seconds(), Name: x.Name})
	}
	picture, err := plot.NewApps(story, reports)
	if err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"run.png": picture.PNG, "run.svg": picture.SVG} {
		if err := files.Write(filepath.Join(d.Dir, name), write); err != nil {
			return err
		}
	}
	return nil
}

// sharedResult says in sentences what came out: of the live run, of its prediction, and of the system of a paper.
func sharedResult(length time.Duration, reports []*report.Report) string {
	live, predicted, other := &reports[0].Overall, &reports[1].Overall, &reports[2].Overall
	missed := func(x *report.Summary) float64 { return 100 * x.ViolationRatio }
	return fmt.Sprintf("%d queries were sent in %v: %.2f %% of them were late or unanswered, and the answers were "+
		"%.2f %% accurate.\nThe simulator says %.2f %% and %.2f %%: it is off by %.2f and %.2f points. %s, the best "+
		"of the published systems here,\nwould have missed %.2f %% at an accuracy of %.2f %%.", live.Offered, length,
		missed(live), accurate(live), missed(predicted), accurate(predicted), math.Abs(missed(predicted)-missed(live)),
		math.Abs(accurate(predicted)-accurate(live)), reports[2].Name, missed(other), accurate(other))
}

// disturbedLag is the 99th percentile of the time by which queries are sent late, in ms, above which other programs
// must have used the cores: on quiet ones it is a third of that.
const disturbedLag = 20

// disturbed says that a run was, if it was, by how late its queries were sent.
func disturbed(lagMS float64) string {
	if lagMS <= disturbedLag {
		return ""
	}
	return fmt.Sprintf("\nOther programs used the cores: 1 %% of the queries were sent more than %.0f ms late. The "+
		"simulator does not know of\nthem. Repeat it on a quiet machine, with --remeasure.", lagMS)
}

// accurate is the mean accuracy of the models that answered, in percent; 0 where none did.
func accurate(x *report.Summary) float64 {
	if x.EffectiveAccuracy == nil {
		return 0
	}
	return 100 * *x.EffectiveAccuracy
}
