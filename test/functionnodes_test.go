package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/heldport"
	"github.com/sluice-serving/sluice/internal/host/functions"
)

// loadedOn lists the models that a node has loaded.
func loadedOn(t *testing.T, address string) (names []string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	index, err := pb.NewGRPCInferenceServiceClient(conn).RepositoryIndex(ctx,
		&pb.RepositoryIndexRequest{Ready: true}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range index.GetModels() {
		names = append(names, m.GetName())
	}
	return names
}

// newServerlessOn is a server of functions on the workers that the text describes. It runs none itself.
func newServerlessOn(t *testing.T, fleet string, args ...any) *serverless {
	t.Helper()
	needsONNX(t)
	s := &serverless{dir: t.TempDir()}
	t.Setenv("TMPDIR", t.TempDir()) // of nodes that are killed
	front := heldport.Address(t)
	s.base, s.admin = "http://"+front, heldport.Address(t)
	s.file = write(t, s.dir, "sluice.yaml", `
version: 1
%s
store: data
server: {not_ready: 0s, http: %q, grpc: "off", admin: %q}
`, fmt.Sprintf(fleet, args...), front, s.admin)
	return s
}

// Functions run on the machines of other processes, which have none of the models: every instance's file goes there
// with its load. A node that is killed and comes back gets it again, a server that is killed finds it there again, and
// with a function its models go.
func TestFunctionsOnNodes(t *testing.T) {
	addresses := []string{heldport.Address(t), heldport.Address(t)}
	s := newServerlessOn(t, `
device_types: [{name: node, cores: 1}]
workers:
  - {name: n, device_type: node, count: 2, backend: {kind: openinference, load_models: true, addresses: [%q, %q]}}`,
		addresses[0], addresses[1])
	nodes := make([]*exec.Cmd, 2)
	for k := range nodes {
		nodes[k] = sluice(t, "node", "--grpc", addresses[k], t.TempDir())
		listening(t, addresses[k])
	}
	on := func(k int) []string { return loadedOn(t, addresses[k]) }
	c := s.start(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 1, "min_instances: 2\n")); status != 0 ||
		!strings.Contains(out, "version 1 is ready") {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	if status, y, text := s.infer("one"); status != 200 || y != 2 {
		t.Fatalf("%d %s", status, text)
	}
	for k := range nodes {
		until(t, func() bool { return len(on(k)) == 1 && strings.HasPrefix(on(k)[0], "fn-") })
	}
	if all := s.list(t); len(all) != 1 || all[0].State != functions.Ready {
		t.Errorf("%+v", all)
	}
	if status, out, _ := s.run(t, "logs", "one"); status != 0 || !strings.Contains(out, "launch") {
		t.Errorf("logs: %d %s", status, out)
	}

	// A new version takes the place of the old one there, too.
	was := on(0)[0]
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 4, "min_instances: 2\n")); status != 0 {
		t.Fatalf("update: %d %s%s", status, out, errs)
	}
	until(t, func() bool { _, y, _ := s.infer("one"); return y == 5 })
	until(t, func() bool { return !slices.Contains(on(0), was) && len(on(0)) == 1 })

	// One node dies and comes back with nothing; the other one answers meanwhile.
	_ = nodes[0].Process.Kill()
	_ = nodes[0].Wait()
	until(t, func() bool { status, y, _ := s.infer("one"); return status == 200 && y == 5 })
	sluice(t, "node", "--grpc", addresses[0], t.TempDir())
	until(t, func() bool { return len(on(0)) == 1 })
	had := [][]string{on(0), on(1)}

	// A server that is killed finds its copies again: there are no more of them after.
	_ = c.Process.Kill()
	_ = c.Wait()
	s.start(t)
	until(t, func() bool { status, y, _ := s.infer("one"); return status == 200 && y == 5 })
	for k := range nodes {
		if now := on(k); !slices.Equal(now, had[k]) {
			t.Errorf("node %d has %v, want %v as before", k, now, had[k])
		}
	}
	if status, out, errs := s.run(t, "delete", "one"); status != 0 {
		t.Fatalf("delete: %d %s%s", status, out, errs)
	}
	for k := range nodes {
		until(t, func() bool { return len(on(k)) == 0 })
	}
}

// A function of which nobody knows the demand has no machine. The first query brings one, with a part of its cores, and
// the machine goes when the function is not called any more.
func TestFunctionsBringMachines(t *testing.T) {
	s := newServerlessOn(t, `
device_types:
  - {name: rented, price_per_hour: 1, tenure: rented, cores: 2}
  - {name: half, part: true, cores: 1}
workers:
  - name: w
    device_type: rented
    count: 2
    backend: {kind: supplied, linger: 1s, command: [/usr/bin/env, %s=1, %q, node, --grpc, "127.0.0.1:{port}", %q]}
system: {name: infless, options: {keep: keepalive, alive: 2s}}`, asProgram, os.Args[0], t.TempDir())
	s.start(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 1, "cold_wait: 30s\n"), "--timeout",
		"2m"); status != 0 {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	state := func() string { return s.list(t)[0].State }
	until(t, func() bool { return state() == functions.Idle })
	until(t, func() bool { status, y, _ := s.infer("one"); return status == http.StatusOK && y == 2 })
	until(t, func() bool { return state() == functions.Idle })
	if status, y, text := s.infer("one"); status != http.StatusOK || y != 2 {
		t.Errorf("called again: %d %s", status, text)
	}
}
