package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running serves a configuration until the test ends.
func running(t testing.TB, text string, o Options) *Server {
	t.Helper()
	return served(t, hosttest.Profiled(t, text), o)
}

// served is running for a configuration with its profile.
func served(t testing.TB, p *host.Profiled, o Options) *Server {
	t.Helper()
	s, err := New(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks a server and reads its JSON.
func get(t *testing.T, address string, into any) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", address, resp.StatusCode, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}

// Metadata says which version serves, in all protocols alike.
func TestMetadataSaysTheVersion(t *testing.T) {
	s := running(t, hosttest.Fakes, Options{GRPC: "off", Admin: "off"})
	var said struct{ Name, Version string }
	get(t, s.HTTPAddr()+"/v2", &said)
	if said.Version == "" || host.Version() != said.Version {
		t.Errorf("metadata says %+v, the program %q", said, host.Version())
	}
}

// The kind of an error says whether the request, a file or the installation is wrong.
func TestKindsOfErrors(t *testing.T) {
	good := hosttest.Write(t, hosttest.Fakes)
	two := strings.Replace(hosttest.Fakes, "server:", `  - {name: other, slo: {latency: 1s}, system: clipper,
     inputs: [{name: x, datatype: FP32, shape: [-1, 4]}], variants: [{name: v, max_batch: 4}]}
server:`, 1)
	o, err := host.Open(good, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		err  func() error
		kind fault.Kind
		says string
	}{
		{"no file", func() error { _, err := host.Open("nowhere.yaml", host.Options{}); return err }, fault.Config,
			"nowhere.yaml"},
		{"an unknown key", func() error {
			_, err := host.Open(hosttest.Write(t, "version: 1\nappps: []\n"), host.Options{})
			return err
		}, fault.Config, `did you mean "apps"`},
		{"two systems", func() error { _, err := host.Open(hosttest.Write(t, two), host.Options{}); return err },
			fault.Config,
			"one server runs one system"},
		{"an unknown system", func() error { _, err := o.WithSystem("none"); return err }, fault.Usage,
			"does not exist"},
		{"no profile", func() error { _, err := o.Profile("nowhere.json"); return err }, fault.Config, "nowhere.json"},
		{"no journal", func() error { _, err := host.Replay(good); return err }, fault.Config, "journal line 1"},
		{"an unknown app", func() error {
			p, err := hosttest.Profiled(t, hosttest.Fakes).Plan(t.Context())
			if err != nil {
				return err
			}
			_, err = p.Simulate(host.Simulation{}, "x", &workload.Spec{
				DurationS: 1, Apps: []workload.AppSpec{{App: "none", Rate: 1}},
			})
			return err
		}, fault.Config, `app "none" is not in`},
	} {
		if err := c.err(); fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: kind %d, %v; want kind %d and %q", c.name, fault.Of(err), err, c.kind, c.says)
		}
	}
}

// A configuration stays as it was opened, whatever is made of it.
func TestStagesAreNotChanged(t *testing.T) {
	p := hosttest.Profiled(t, hosttest.Fakes)
	before := p.System().Name
	other, err := p.WithSystem("clipper")
	if err != nil || other.System().Name != "clipper" {
		t.Fatal(err)
	}
	large, moved, err := p.Resized([]int{1})
	if err != nil || len(large.Spec().Workers) != 3 || len(moved) != 2 {
		t.Fatalf("%v, %d workers, %v", err, len(large.Spec().Workers), moved)
	}
	none := p.WithPlacement(nil)
	if p.System().Name != before || len(p.Spec().Workers) != 2 || len(p.Tables().Placement) == 0 ||
		len(none.Tables().Placement) != 0 {
		t.Errorf("it has system %s, %d workers, %d instances", p.System().Name, len(p.Spec().Workers),
			len(p.Tables().Placement))
	}
	if _, err := New(t.Context(), large, Options{}); err == nil ||
		!strings.Contains(err.Error(), "planned for, not run") {
		t.Errorf("a fleet of workers that nobody describes was served: %v", err)
	}
}

// A system that learns begins a run without latencies that were only assumed. Plans that are asked for use them.
func TestLearningBeginsWithoutAssumptions(t *testing.T) {
	text := hosttest.Fakes +
		"system: {router: earliestfinish, batcher: single, scaler: mixshift, options: {learn: true}}\n"
	p := hosttest.Profiled(t, text)
	if _, learned := p.Latencies().(*profile.Learned); learned {
		t.Error("fakes are not assumed to take what they are set to")
	}
	run, err := p.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, learned := run.Latencies().(*profile.Learned); !learned {
		t.Error("the run begins with what was assumed")
	}
	if n := len(run.JournalHeader().Measurements.Latency); n != 0 || len(run.Measurements().Latency) == 0 {
		t.Errorf("the journal has %d latencies; machines have %d to behave by", n, len(run.Measurements().Latency))
	}
}

// A server that could not start, or never served, releases all its resources.
func TestServersAreReleased(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := hosttest.Profiled(t, hosttest.Fakes)
	if s, err := New(t.Context(), p, Options{HTTP: taken.Addr().String()}); err == nil {
		t.Errorf("two listen on %s", s.HTTPAddr())
	}
	s, err := New(t.Context(), p, Options{GRPC: "off"})
	if err != nil {
		t.Fatal(err)
	}
	address := s.HTTPAddr()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the address is not free again: %v", err)
	}
	again.Close()
	if usage := s.Usage(); usage.Dollars != 0 {
		t.Errorf("a closed server has been used for %+v", usage)
	}
}

// A journal that cannot be written is no journal: the run that was to be recorded fails.
func TestJournalsThatCannotBeWritten(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	p, err := hosttest.Profiled(t, hosttest.Fakes).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Simulate(host.Simulation{Journal: full}, "x", &workload.Spec{
		DurationS: 20, Apps: []workload.AppSpec{{App: "app", Rate: 200}},
	})
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
}
