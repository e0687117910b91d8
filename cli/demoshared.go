package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/host/demo"
	"github.com/sluice-serving/sluice/host/files"
	"github.com/sluice-serving/sluice/host/load"
	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/report/plot"
)

// sharedDemo serves two apps and a graph that share the machine.
func sharedDemo(s *demoScreen, setting demo.Setting) error {
	d := &demo.Shared{}
	d.Setting = setting
	d.Objective = demo.SharedObjective
	s.say("1. models: classifiers of digits, detectors and readers, in %s\n", d.Models())
	opened, err := d.Build(s.Context, s.options())
	if err != nil {
		return err
	}
	profiled, err := s.profile(d, opened)
	if err != nil {
		return err
	}
	planned, err := profiled.Plan(s.Context)
	if err != nil {
		return err
	}
	spec := d.Load(profiled)
	s.say("3. load: %v with Poisson arrivals; digits rise, then scenes grow from %d digits to %d, then codes rise\n",
		d.Length, demo.QuietScene, demo.BusyScene)
	for a, x := range spec.Apps {
		low, high := x.Rates[0].Rate, 0.0
		for _, r := range x.Rates {
			high = max(high, r.Rate)
		}
		s.say("   %-8s %.1f to %.1f queries/s, objective %v\n", x.App, low, high, opened.Spec().Apps[a].SLO.Latency)
	}
	var wrong error
	live, err := d.Drive(s.Context, planned, s.serverOptions(opened), &spec,
		func(l *load.Loader) { wrong = d.Prepare(l) }, func(*host.Server) {})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return err
	}
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
	picture, err := plot.NewApps("sluice demo: two apps and a graph share the machine; which variants answer, and why",
		names, reports)
	if err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"run.png": picture.PNG, "run.svg": picture.SVG} {
		if err := files.Write(filepath.Join(d.Dir, name), write); err != nil {
			return err
		}
	}
	if s.asJSON {
		return writeJSON(s.Stdout, map[string]any{
			"live": live, "simulated": predicted, "best_of_papers": other,
			"differences": report.Compare(live.Report, predicted), "files": written,
		})
	}
	fmt.Fprintf(s.Stdout, "4. what was served, what the simulator predicts for the same arrivals, and what %s, the "+
		"best of the\n   papers' systems here, would have done (simulated)\n\n", other.Name)
	if err := report.SideBySide(s.Stdout, names, reports); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "\n   %-8s %24s %24s %24s\n", "app", names[0], names[1], names[2])
	for a := range live.Report.Apps {
		fmt.Fprintf(s.Stdout, "   %-8s", live.Report.Apps[a].Name)
		for _, r := range reports {
			x := &r.Apps[a]
			accuracy := 0.0
			if x.EffectiveAccuracy != nil {
				accuracy = 100 * *x.EffectiveAccuracy
			}
			fmt.Fprintf(s.Stdout, " %24s", fmt.Sprintf("%.2f %%, %.2f %% missed", accuracy, 100*x.ViolationRatio))
		}
		fmt.Fprintln(s.Stdout)
	}
	printSending(s.Stdout, live)
	fmt.Fprintln(s.Stdout)
	s.written(&d.Setting, written, other.Name)
	return nil
}
