package test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/functions"
)

// writeChain writes a chain.yaml of two steps: a, and b on what a gives.
func (s *serverless) writeChain(t *testing.T, name, a, b, more string) string {
	t.Helper()
	return write(t, s.dir, name+"-chain.yaml", `
name: %s
slo: {latency: 1s}
stages:
  - {name: first, variants: [{model: %s}], next: [{to: then}]}
  - {name: then, variants: [{model: %s}], inputs: {x: y}}
%s`, name, a, b, more)
}

// deployTwo deploys functions that add 1 and 10.
func (s *serverless) deployTwo(t *testing.T) {
	t.Helper()
	for name, number := range map[string]float32{"one": 1, "ten": 10} {
		if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, name, number, "")); status != 0 {
			t.Fatalf("deploy %s: %d %s%s", name, status, out, errs)
		}
	}
}

// Deployed functions are called one after the other under one name. The chain is kept: it answers after a kill of the
// server, and stays as it is when a function of it is replaced or deleted, until it is deployed again.
func TestChainOfFunctions(t *testing.T) {
	s := newServerless(t)
	c := s.start(t)
	must := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := s.run(t, args...); status != 0 || !strings.Contains(out, want) {
			t.Fatalf("%v: %d %s%s", args, status, out, errs)
		}
	}
	answers := func(name string, want float64) {
		t.Helper()
		if status, y, text := s.infer(name); status != http.StatusOK || y != want {
			t.Fatalf("%s: %d %v, want %v: %s", name, status, y, want, text)
		}
	}
	must("version 1", "deploy", "-f", s.adds(t, "one", 1, ""))
	must("version 1", "deploy", "-f", s.adds(t, "ten", 10, ""))
	must("both: version 1 is ready", "deploy", "-f", s.writeChain(t, "both", "one", "ten", ""))
	answers("both", 12)
	must("one, ten", "list")
	must("deploy", "logs", "both")

	// What is wrong with a chain is said with its place, and changes nothing.
	for _, x := range []struct{ name, then, more, want string }{
		{"both", "none", "", `there is no function "none"`},
		{"both", "ten", "  - {name: first, function: identity}\n", "stages[2].name"},
		{"both", "ten", "  - {name: third, function: nothing}\n", "stages[2].function"},
		{"both", "ten", "late: 1s\n", "both-chain.yaml:7: late"},
		{"one", "ten", "", "is a function"},
	} {
		file := s.writeChain(t, x.name, "one", x.then, x.more)
		if status, out, errs := s.run(t, "deploy", "-f", file); status == 0 || !strings.Contains(errs, x.want) {
			t.Errorf("%+v: %d %s%s", x, status, out, errs)
		}
	}
	if status, _, errs := s.run(t, "deploy", "-f", s.adds(t, "both", 3, "")); status == 0 ||
		!strings.Contains(errs, "is a chain") {
		t.Errorf("a function in the place of a chain: %d %s", status, errs)
	}
	answers("both", 12)

	// New versions of its functions are taken up when the chain is deployed again.
	must("version 2", "deploy", "-f", s.adds(t, "ten", 20, ""))
	answers("both", 12)
	must("version 2 is ready", "deploy", "-f", s.writeChain(t, "both", "one", "ten", ""))
	answers("both", 22)

	_ = c.Process.Kill()
	_ = c.Wait()
	again := s.start(t)
	until(t, func() bool { _, y, _ := s.infer("both"); return y == 22 })
	must("deleted", "delete", "ten")
	answers("both", 22)
	all := s.list(t)
	if len(all) != 2 || all[0].Name != "both" || all[0].Version != 2 || all[0].State != functions.Ready ||
		strings.Join(all[0].Functions, " ") != "one ten" {
		t.Errorf("%+v", all)
	}

	// An app of the configuration with its name goes first: the chain is listed as failing, and can be deleted.
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.dir, "sluice.yaml", "%s\nmodels: {repository: models}\napps: [{name: both, slo: {latency: 1s}, "+
		"variants: [{model: app}]}]\n", text)
	if err := os.CopyFS(filepath.Join(s.dir, "models", "app", "1"), os.DirFS(filepath.Join(s.dir, "data", "chains",
		"both", "2", "one", "1"))); err != nil {
		t.Fatal(err)
	}
	_ = again.Process.Kill()
	_ = again.Wait()
	s.start(t)
	until(t, func() bool { return len(s.list(t)) == 2 && s.list(t)[0].State == functions.Failing })
	if all := s.list(t); !strings.Contains(all[0].LastFailure, "has its name") {
		t.Errorf("%+v", all[0])
	}
	answers("both", 2) // the app's
	must("deleted", "delete", "both")
	answers("both", 2)
	answers("one", 2)
}

// A chain that is deleted is gone, and its functions stay.
func TestDeletedChain(t *testing.T) {
	s := newServerless(t)
	s.start(t)
	s.deployTwo(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.writeChain(t, "both", "one", "ten", "")); status != 0 {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	if status, out, errs := s.run(t, "delete", "both"); status != 0 {
		t.Fatalf("delete: %d %s%s", status, out, errs)
	}
	if status, _, _ := s.infer("both"); status != http.StatusNotFound {
		t.Errorf("a chain that was deleted: %d", status)
	}
	if all := s.list(t); len(all) != 2 || all[0].Name != "one" {
		t.Errorf("%+v", all)
	}
}

// With a system that starts instances when they are called a chain has none until then, and is let go again.
func TestChainFromNothing(t *testing.T) {
	s := newServerlessOn(t, `
device_types: [{name: local, cores: 2}, {name: half, part: true, cores: 1}]
workers: [{name: w, device_type: local}]
system: {name: infless, options: {keep: keepalive, alive: 1s}}`)
	s.start(t)
	s.deployTwo(t)
	status, out, errs := s.run(t, "deploy", "-f", s.writeChain(t, "both", "one", "ten", "cold_wait: 30s\n"))
	if status != 0 || !strings.Contains(out, "version 1 is idle") {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	state := func() string { return s.list(t)[0].State }
	for range 2 {
		if status, y, text := s.infer("both"); status != http.StatusOK || y != 12 {
			t.Fatalf("%d %s", status, text)
		}
		until(t, func() bool { return state() == functions.Idle })
	}
}
