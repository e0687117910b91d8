package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// config is the configuration of a cell as its dispatcher has it.
func (p *place) config(n int32) cell.Files {
	p.Helper()
	m := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: p.ns, Name: cell.Name("default", n)}
	if err := p.c.Client.Get(p.Context(), key, m); err != nil {
		p.Fatal(err)
	}
	files, err := cell.Get(m)
	if err != nil {
		p.Fatal(err)
	}
	return files
}

// open opens a cell as `sluice simulate` opens a configuration.
func open(t *testing.T, files cell.Files, rates map[string]float64) *host.Profiled {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := host.Open(filepath.Join(dir, cell.KeyConfig), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	profiled, err := opened.Profile()
	if err != nil {
		t.Fatal(err)
	}
	return profiled.Expecting(rates)
}

// simulate runs a cell on a virtual clock under a load of its apps. incidents get the names of the machines that its
// first plan uses.
func simulate(t *testing.T, profiled *host.Profiled, load *workload.Spec, starts map[string]time.Duration,
	incidents func(machines []string) []host.Incident) *report.Report {
	t.Helper()
	planned, err := profiled.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, i := range planned.FirstPlan().Instances {
		used = append(used, planned.Spec().Workers[i.Worker].Name)
	}
	slices.Sort(used)
	s := host.Simulation{Seed: 1, PlanDelay: host.DefaultPlanDelay, NoBound: true, Starts: starts}
	if incidents != nil {
		s.Incidents = incidents(slices.Compact(used))
	}
	r, err := planned.Simulate(s, "simulated", load)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// missed is how many queries of a simulated run were late or not answered.
func missed(r *report.Report) int {
	o := &r.Overall
	return int(o.Late + o.Dropped + o.Refused + o.Failed)
}
