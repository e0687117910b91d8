package server_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// bare is a grpc-go handler that takes and returns the same messages and does nothing.
type bare struct {
	pb.UnimplementedGRPCInferenceServiceServer
}

func (bare) ModelInfer(_ context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	return &pb.ModelInferResponse{ModelName: r.ModelName, ModelVersion: "1", Id: r.Id,
		Parameters: map[string]*pb.InferParameter{
			"variant": oip.String("model"), "accuracy": oip.Double(0.9), "queue_us": oip.Int(1),
			"batch_size": oip.Int(1), "query_id": oip.Int(1),
		},
		Outputs: []*pb.ModelInferResponse_InferOutputTensor{
			{Name: "input", Datatype: "FP32", Shape: r.Inputs[0].Shape},
		}, RawOutputContents: r.RawInputContents}, nil
}

// client connects n times to a server.
func clients(tb testing.TB, address string, n int) []pb.GRPCInferenceServiceClient {
	var out []pb.GRPCInferenceServiceClient
	for range n {
		c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = c.Close() })
		out = append(out, pb.NewGRPCInferenceServiceClient(c))
	}
	return out
}

func startBare(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, bare{})
	go func() { _ = s.Serve(l) }()
	tb.Cleanup(s.Stop)
	return l.Addr().String()
}

// live is a Service over a real data plane.
type live struct {
	server.Service
	plane *dataplane.Plane
	model *server.Model
}

func (l *live) Ready() bool                                         { return true }
func (l *live) Models() []*server.Model                             { return []*server.Model{l.model} }
func (l *live) Lookup(name string) (*server.Model, bool)            { return l.model, name == l.model.Name }
func (l *live) ModelReady(*server.Model, string) bool               { return true }
func (l *live) Reason(*server.Model, string) string                 { return "" }
func (l *live) Statistics(*server.Model) []server.VersionStatistics { return nil }
func (l *live) Chain(front server.Links) server.Infer {
	return server.Chain(l.plane.Infer, front.Tenant, front.Deadline, front.Trace)
}

// startSluice runs the whole path, front end, data plane, engine, with a runtime that takes no time.
func startSluice(tb testing.TB, system string, change ...func(*server.Config)) string {
	address, _ := startBoth(tb, system, change...)
	return address
}

// startBoth is startSluice with the address of HTTP beside that of gRPC.
func startBoth(tb testing.TB, system string, change ...func(*server.Config)) (grpcAt, httpAt string) {
	c := simtest.Uniform(2, 10*time.Microsecond, 10*time.Microsecond, time.Second, 32)
	s, err := systems.Get(system)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		tb.Fatal(err)
	}
	b, err := fake.New(fake.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	log := steps.New(c.Spec, steps.Options{})
	told := telemetry.New(c.Spec, log, telemetry.Options{})
	p, err := dataplane.New(dataplane.Config{Spec: c.Spec, Engine: e,
		Backend: func(serving.WorkerID) dataplane.Backend {
			return b
		}, Initial: c.Plan,
		Observe: log.Observe, Outcome: told.Outcome})
	if err != nil {
		tb.Fatal(err)
	}
	m := &server.Model{Name: "app", Batched: true, MaxBatch: 32, Versions: []server.Version{
		{Name: "model", Version: "1", Accuracy: 0.9},
	},
		Inputs: []tensor.Spec{{Name: "input", DType: tensor.FP32, Shape: []int64{-1, 16}}}}
	config := server.Config{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	for _, f := range change {
		f(&config)
	}
	srv, err := server.New(config, &live{plane: p, model: m})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		p.Close()
	})
	return srv.GRPCAddr(), srv.HTTPAddr()
}

func message() *pb.ModelInferRequest {
	return oip.EncodeRequest("app", "", "", []tensor.Tensor{
		{Name: "input", DType: tensor.FP32, Shape: []int64{1, 16}, Data: make([]byte, 64)},
	}, nil)
}

// fire sends n requests from many callers and returns how long it took.
func fire(tb testing.TB, to []pb.GRPCInferenceServiceClient, callers, n int) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	begun := time.Now()
	for k := range callers {
		wg.Go(func() {
			r := message()
			for left.Add(-1) >= 0 {
				if _, err := to[k%len(to)].ModelInfer(context.Background(), r); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}

// turns is in how many turns two servers are compared.
const turns = 40

// compare has a bare server and the whole path answer b.N requests each, in turns, so that a machine that drifts drifts
// under both. ratio is the rate of the whole path over that of the bare one. cpu-ratio is the processor time of the
// bare one over that of the whole path, clients included: other programs on the machine change it less.
func compare(b *testing.B, bare, whole func(n int) time.Duration) {
	bare(2000)
	whole(2000)
	b.ReportAllocs()
	b.ResetTimer()
	var took, used [2]time.Duration
	turn, n := max(b.N/turns, 1), 0
	for ; n < b.N; n += turn {
		for k, fire := range []func(int) time.Duration{bare, whole} {
			begun := processorTime(b)
			took[k] += fire(turn)
			used[k] += processorTime(b) - begun
		}
	}
	b.ReportMetric(float64(n)/took[0].Seconds(), "bare-req/s")
	b.ReportMetric(float64(n)/took[1].Seconds(), "sluice-req/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
	b.ReportMetric(used[0].Seconds()/used[1].Seconds(), "cpu-ratio")
}

// processorTime is what this process has used so far.
func processorTime(tb testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGRPC compares the whole path, with a runtime that takes no time, with a bare handler.
func BenchmarkGRPC(b *testing.B) {
	for _, system := range []string{"sluice", "clkwrk", "nexus-batching"} {
		b.Run(system, func(b *testing.B) {
			address := startSluice(b, system)
			base, whole := clients(b, startBare(b), 4), clients(b, address, 4)
			compare(b, func(n int) time.Duration { return fire(b, base, 64, n) },
				func(n int) time.Duration { return fire(b, whole, 64, n) })
		})
	}
}

// BenchmarkIdle measures what the whole path adds to a single caller's latency, at the median, over a bare handler.
func BenchmarkIdle(b *testing.B) {
	address := startSluice(b, "sluice")
	base, whole := clients(b, startBare(b), 1)[0], clients(b, address, 1)[0]
	r := message()
	one := func(to pb.GRPCInferenceServiceClient) time.Duration {
		begun := time.Now()
		if _, err := to.ModelInfer(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
	for range 200 {
		one(base)
		one(whole)
	}
	var tb, tw []time.Duration
	b.ResetTimer()
	for range b.N {
		tb, tw = append(tb, one(base)), append(tw, one(whole))
	}
	slices.Sort(tb)
	slices.Sort(tw)
	b.ReportMetric(float64(tb[len(tb)/2])/1e3, "bare-p50-us")
	b.ReportMetric(float64(tw[len(tw)/2])/1e3, "sluice-p50-us")
	b.ReportMetric(float64(tw[len(tw)/2]-tb[len(tb)/2])/1e3, "added-us")
}
