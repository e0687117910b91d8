package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// misjudged is a configuration whose models take 30 ms for an item and 10 ms for each more, and were measured with a
// fortieth.
const misjudged = `
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 20ms, latency_per_item: 10ms}}]
system: {name: %s}
apps:
  - name: asked
    slo: {latency: 2s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: fast, max_batch: 64}]
  - name: unasked
    slo: {latency: 20ms%s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: slow, max_batch: 64}]
server: {http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0", not_ready: 0s}
`

// servingMisjudged serves the configuration.
func servingMisjudged(t *testing.T, system, proposed string, o Options) *Server {
	t.Helper()
	opened, err := host.Open(hosttest.Write(t, fmt.Sprintf(misjudged, system, proposed)), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &profiler.File{Version: profiler.Version, DeviceType: "d"}
	for _, v := range []string{"fast", "slow"} {
		for _, items := range []int{1, 4, 64} {
			us := 500 + 250*float64(items)
			f.Points = append(f.Points, profiler.Point{Variant: v, DeviceType: "d", Batch: items, Concurrency: 1,
				Samples: 10, Mean: us, P50: us, P90: us, P95: us, P99: us})
		}
	}
	p, err := opened.ProfileOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return served(t, p, o)
}

// query sends a query of so many items and returns the status of its answer.
func query(t *testing.T, s *Server, app string, items int) (status int, text string) {
	t.Helper()
	data := strings.TrimSuffix(strings.Repeat("0,", 4*items), ",")
	return ask(t, http.MethodPost, s.HTTPAddr()+"/v2/models/"+app+"/infer",
		fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,4],"data":[%s]}]}`, items, data))
}

// A model takes far longer than was measured, and nobody asked for its objective: all of its queries are answered, and
// the objective is raised to what is seen. The log says both once. An objective that was asked for stays, and with it
// the refusals.
func TestProposedObjectives(t *testing.T) {
	for _, system := range []string{"sluice", "clipper"} {
		t.Run(system, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			t.Cleanup(func() {
				if r, err := host.Replay(path); err != nil || r.Difference != nil || r.Decisions == 0 {
					t.Errorf("the journal replays with %v: %+v", err, r)
				}
			})
			raises(t, system, path)
		})
	}
}

func raises(t *testing.T, system, path string) {
	var log hosttest.Lines
	s := servingMisjudged(t, system, ", proposed: true", Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Journal: path,
	})
	for k := range 24 {
		if status, text := query(t, s, "unasked", 1+k%4); status != http.StatusOK {
			t.Fatalf("query %d of an idle server: %d %s", k, status, text)
		}
	}
	objective := func() (asked, unasked time.Duration) {
		s.plane.Inspect(func(e *engine.Engine) {
			asked, unasked = e.Spec().Apps[0].SLO.Latency, e.Spec().Apps[1].SLO.Latency
		})
		return asked, unasked
	}
	if err := waitFor(t.Context(), func() bool { _, d := objective(); return d > 100*time.Millisecond }); err != nil {
		t.Fatalf("the objective stays: %v", err)
	}
	for _, app := range []string{"asked", "unasked"} {
		if status, text := query(t, s, app, 4); status != http.StatusOK {
			t.Errorf("a query of %s after the change: %d %s", app, status, text)
		}
	}
	if system == "sluice" { // whose planner leaves it to its rule how long batches may be
		if status, text := query(t, s, "unasked", 64); status != http.StatusOK {
			t.Errorf("a query that takes longer than the objective: %d %s", status, text)
		}
	}
	if asked, _ := objective(); asked != 2*time.Second {
		t.Errorf("the objective that was asked for becomes %v", asked)
	}
	if log.Count("objective is raised") == 0 || log.Count("far longer than was measured") != 1 {
		t.Errorf("want one warning, and what is raised:\n%s", log.Text.String())
	}
	var board struct {
		Apps []struct {
			SLO      float64 `json:"slo_ms"`
			Proposed bool    `json:"slo_proposed"`
		}
	}
	get(t, s.AdminAddr()+"/api/v1/overview", &board)
	if x := board.Apps; len(x) != 2 || x[0].Proposed || !x[1].Proposed || x[1].SLO <= 100 {
		t.Errorf("the dashboard shows %+v", x)
	}
}

// An objective that was asked for refuses what cannot be in time, and never says that the request is wrong.
func TestObjectivesThatWereAskedFor(t *testing.T) {
	s := servingMisjudged(t, "sluice", "", Options{})
	refused := 0
	for k := 0; k < 500 && refused < 3; k++ {
		switch status, text := query(t, s, "unasked", 1); status {
		case http.StatusOK:
		case http.StatusGatewayTimeout, http.StatusServiceUnavailable:
			refused++
		default:
			t.Fatalf("a query that cannot be in time: %d %s, want 503 or 504", status, text)
		}
	}
	if refused == 0 {
		t.Error("an objective that was asked for gives no query up")
	}
}
