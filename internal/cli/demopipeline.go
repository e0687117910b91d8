package cli

import (
	"fmt"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/demo"
	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// scenesDemo serves a graph of models that read scenes.
func scenesDemo(s *demoScreen, setting demo.Setting) error {
	d := &demo.Scenes{Setting: setting}
	d.Objective = demo.ScenesObjective
	opened, profiled, planned, err := s.plan(&d.Setting, d.Build)
	if err != nil {
		return err
	}
	spec, busiest := d.Load(profiled)
	rate := spec.Apps[0].Rate
	s.say("\n3. load: %.0f scenes/s for %v, Poisson arrivals, objective %v from end to end; scenes grow from %d "+
		"digits to %d\n", rate, d.Length, d.Objective, demo.QuietScene, demo.BusyScene)
	if err := s.scenePlans(d, planned, busiest, rate); err != nil {
		return err
	}
	var used report.Usage
	live, err := d.Drive(s.Context, planned, s.serverOptions(opened), &spec, d.Prepare,
		func(server *server.Server) { used = server.Usage() })
	if err != nil {
		return err
	}
	predicted, err := d.Predict(planned)
	if err != nil {
		return err
	}
	return s.scenesOutcome(d, live, predicted, used)
}

// scenePlans prints the plans of the stages for scenes with few and with many digits.
func (s *demoScreen) scenePlans(d *demo.Scenes, p *host.Planned, busiest *serving.Spec, rate float64) error {
	for _, x := range []struct {
		spec   *serving.Spec
		digits int
	}{{p.Spec(), demo.QuietScene}, {busiest, demo.BusyScene}} {
		v, err := d.PlanFor(s.Context, p, x.spec, rate)
		if err != nil {
			return err
		}
		s.say("\n   the plan for scenes of %d digits: %.4f $/h, of which %.4f is used\n", x.digits, v.CostPerHour,
			*v.CostUsed)
		if err := printStages(s.words, &v); err != nil {
			return err
		}
	}
	return nil
}

// scenesOutcome prints the measured run beside the predicted one, and how many digits were read correctly.
func (s *demoScreen) scenesOutcome(d *demo.Scenes, live *loadgen.Result, predicted *report.Report,
	used report.Usage) error {
	s.bar.clear()
	names, reports := []string{"live", "simulated"}, []*report.Report{live.Report, predicted}
	written, err := saveReports(d.Dir, "sluice demo pipeline: live and simulated", names, reports)
	if err != nil {
		return err
	}
	cost, n := used.Dollars/d.Length.Hours(), d.Tally()
	if s.asJSON {
		return writeJSON(s.Stdout, map[string]any{
			"live": live, "simulated": predicted, "differences": report.Compare(live.Report, predicted),
			"reading": map[string]any{
				"digits": n.Present, "found": n.Found, "right": n.Correct, "precision": n.Precision(),
				"recall": n.Recall(),
			},
			"cost_per_hour": cost, "files": written,
		})
	}
	fmt.Fprintf(s.Stdout, "4. what was served, and what the simulator predicts for the same scenes\n\n")
	if err := report.SideBySide(s.Stdout, names, reports); err != nil {
		return err
	}
	if err := report.PartTable(s.Stdout, names, live.Report, predicted); err != nil {
		return err
	}
	if err := printStageUse(s.Stdout, live); err != nil {
		return err
	}
	printSending(s.Stdout, live)
	fmt.Fprintf(s.Stdout,
		"\n%d digits in the answered scenes: %d found, %d of them found and read rightly (precision %.1f %%, recall "+
			"%.1f %%)\n", n.Present, n.Found, n.Correct, 100*n.Precision(), 100*n.Recall())
	fmt.Fprintf(s.Stdout, "the machine's cores cost %.4f $/h while it was served\n\n", cost)
	s.written(&d.Setting, written, "nexus")
	return nil
}
