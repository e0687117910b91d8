package test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	hostserver "github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/internal/provider/process"
	"github.com/sluice-serving/sluice/tensor"
)

// counted is a supply that counts the machines that are held.
type counted struct {
	*process.Supply
	mu   sync.Mutex
	held map[string]int // by worker: how often its machine came
}

func (c *counted) Acquire(ctx context.Context, w provider.Worker) (provider.Machine, error) {
	m, err := c.Supply.Acquire(ctx, w)
	if err == nil && m.Started > 0 {
		c.mu.Lock()
		c.held[w.Name]++
		c.mu.Unlock()
	}
	return m, err
}

// running lists the workers whose machine runs.
func (c *counted) running() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.held {
		if c.PID(w) != 0 {
			out = append(out, w)
		}
	}
	return out
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("after 90 s it is not so that %s", what)
		}
	}
}

// Machines that are nodes of their own come with the load. One that is killed under load costs no query more than an
// error that says to try again, none hangs, and another takes its place. What the load no longer needs is given back.
func TestSuppliedMachines(t *testing.T) {
	needsONNX(t)
	t.Parallel()
	dir := t.TempDir()
	models := filepath.Join(dir, "models")
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 4).Write(
		filepath.Join(models, "echo", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: rented, price_per_hour: 1, tenure: rented, cores: 1}]
workers: [{name: w, device_type: rented, count: 3, backend: {kind: supplied, linger: 1s}}]
profiles: [profile.json]
apps:
  - name: app
    slo: {latency: 2s}
    inputs: [{name: input, datatype: FP32, shape: [-1, 4]}]
    outputs: [{name: output, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, model: echo, max_batch: 4}]
server: {not_ready: 0s, http: "off", grpc: "127.0.0.1:0", admin: "off", drain_timeout: 5s}
`)
	write(t, dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [
  {"variant": "echo", "device_type": "rented", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 20000,
      "stddev_us": 500, "p50_us": 20000, "p90_us": 21000, "p95_us": 22000, "p99_us": 23000, "interpolated": false},
  {"variant": "echo", "device_type": "rented", "batch": 4, "concurrency": 1, "samples": 100, "mean_us": 80000,
      "stddev_us": 500, "p50_us": 80000, "p90_us": 81000, "p95_us": 82000, "p99_us": 83000, "interpolated": false}],
 "loads": []}`)
	supply := &counted{held: make(map[string]int), Supply: process.New(process.Config{
		Command: func(provider.Worker) []string {
			return []string{"/usr/bin/env", asProgram + "=1", os.Args[0], "node", "--grpc", "127.0.0.1:{port}", models}
		},
		Log: func(worker, line string) { t.Logf("%s: %s", worker, line) },
	})}
	defer func() {
		if err := supply.Close(); err != nil {
			t.Error(err)
		}
	}()
	opened, err := host.Open(file, host.Options{Machines: supply})
	if err != nil {
		t.Fatal(err)
	}
	profiled, err := measuring.EnsureProfile(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	server, err := hostserver.New(t.Context(), profiled,
		hostserver.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(server.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewGRPCInferenceServiceClient(conn)
	load := startLoad(t, client)
	eventually(t, "a machine has come and answers", func() bool { return load.ok.Load() > 10 })
	load.rate(140) // of about 50 queries/s that each machine is believed to carry
	eventually(t, "three machines run", func() bool { return len(supply.running()) == 3 })
	victim := supply.running()[0]
	before := supply.count(victim)
	if err := syscall.Kill(supply.PID(victim), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed machine's worker has another", func() bool { return supply.count(victim) > before })
	from := load.ok.Load()
	eventually(t, "queries are answered again", func() bool { return load.ok.Load() > from+300 })
	load.rate(2)
	eventually(t, "machines were given back", func() bool { return len(supply.running()) == 1 })
	load.end()
	t.Logf("%d answered, %d to be tried again, machines that came: %v", load.ok.Load(), load.again.Load(), supply.held)
	for _, err := range load.other() {
		t.Errorf("an error that does not say to try again: %v", err)
	}
}

func (c *counted) count(worker string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[worker]
}

// flow sends queries at a rate until it ends.
type flow struct {
	ok, again atomic.Int64
	pause     atomic.Int64 // ns between two queries
	stop      chan struct{}
	done      sync.WaitGroup

	mu     sync.Mutex
	failed []error
}

func startLoad(t *testing.T, client pb.GRPCInferenceServiceClient) *flow {
	f := &flow{stop: make(chan struct{})}
	f.rate(10)
	f.done.Go(func() {
		for {
			select {
			case <-f.stop:
				return
			case <-time.After(time.Duration(f.pause.Load())):
				f.done.Go(func() { f.one(t.Context(), client) })
			}
		}
	})
	t.Cleanup(f.end)
	return f
}

func (f *flow) rate(perSecond int) { f.pause.Store(int64(time.Second) / int64(perSecond)) }

func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
	f.mu.Unlock()
	f.done.Wait()
	f.mu.Lock()
}

func (f *flow) one(ctx context.Context, client pb.GRPCInferenceServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // of a query that hangs
	defer cancel()
	_, err := client.ModelInfer(ctx, oip.EncodeRequest("app", "", "", []tensor.Tensor{
		{Name: "input", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)},
	}, nil))
	switch code := status.Code(err); {
	case err == nil:
		f.ok.Add(1)
	case code == codes.Unavailable || code == codes.DeadlineExceeded && ctx.Err() == nil: // refused, or too late
		f.again.Add(1)
	default:
		f.mu.Lock()
		if len(f.failed) < 5 {
			f.failed = append(f.failed, fmt.Errorf("%T: %w", err, err))
		}
		f.mu.Unlock()
	}
}

func (f *flow) other() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}
