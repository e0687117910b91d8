package dispatcher

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
	"github.com/sluice-serving/sluice/operator/dispatcher/status"
)

// report writes the status of the cells and apps that this replica holds and serves, until ctx ends.
func (d *Dispatcher) report(ctx context.Context) {
	set, err := kubernetes.NewForConfig(d.o.Config)
	if err != nil {
		d.o.Log.Error("no status is written", "error", err)
		return
	}
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: set.CoreV1().Events(d.o.Namespace)})
	w := status.NewWriter(status.Config{Client: d.api, Namespace: d.o.Namespace, Fleet: d.o.Fleet, Holder: d.o.Pod,
		Events: events.NewRecorder(d.api.Scheme(), corev1.EventSource{Component: "sluice-dispatcher", Host: d.o.Pod}),
		Every:  d.o.StatusEvery, Log: d.o.Log})
	tick := time.NewTicker(min(time.Second, d.o.StatusEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.Write(ctx, d.sources())
	}
}

// sources are the cells whose status this replica writes.
func (d *Dispatcher) sources() map[int]status.Source {
	out := make(map[int]status.Source)
	held := d.elector.Held()
	for n, run := range d.runs.Runs() {
		if !slices.Contains(held, n) {
			continue
		}
		out[n] = status.Source{
			Run:     run.Version,
			Figures: func() status.Cell { return status.Of(run.Server, run.Rates(), unfetched(run)) },
			Plan:    run.Server.MadePlan,
			Advise:  func(ctx context.Context) (status.Said, error) { return advise(ctx, run) },
			Failure: d.runs.Failure(n),
			Share:   func(app string) float64 { return d.configs.share(n, app) },
			Writes:  func(app string) bool { return d.configs.lowest(app) == n },
		}
	}
	return out
}

// unfetched says why models of a run could not be fetched, as its machines' pods do.
func unfetched(run *runner.Run) map[string]string {
	if s, ok := run.Machines.(interface{ Unfetched() map[string]string }); ok {
		return s.Unfetched()
	}
	return nil
}

// adviseTime bounds a diagnosis.
const adviseTime = 20 * time.Second

// advise diagnoses the plan of a run for the demand that it sees.
func advise(ctx context.Context, run *runner.Run) (out status.Said, err error) {
	limit, done := context.WithTimeout(ctx, adviseTime)
	defer done()
	rates := run.Profiled.Demand()
	past := run.Server.Past()
	for a, name := range run.Profiled.AppNames() {
		rates[a] = max(rates[a], past[name].Rate)
	}
	a, err := planning.Advise(limit, run.Profiled, rates)
	if err != nil {
		return out, err
	}
	return said(a), nil
}

// said takes from advice what a status has room for.
func said(a *questions.Advice) (out status.Said) {
	if len(a.Summary) > 0 {
		out.Lacks = a.Summary[0]
	}
	for _, list := range a.Lists {
		for _, x := range list.Items {
			if x.Remedy != nil {
				out.Remedies = append(out.Remedies, x.Text)
			}
		}
	}
	return out
}
