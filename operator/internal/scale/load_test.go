package scale

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// load is a steady stream of queries to every app, through all dispatchers.
type load struct {
	clients []pb.GRPCInferenceServiceClient
	rate    float64
	stop    context.CancelFunc
	all     sync.WaitGroup

	sent, answered, late, again, failed atomic.Int64
	last                                atomic.Pointer[error]
}

// startLoad sends queries to apps. Those that have not begun to answer are asked at the same rate: the load is there
// before the machines.
func startLoad(t *testing.T, z size, d *dispatchers) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{rate: z.rate(), stop: stop}
	for _, at := range d.grpc {
		conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		l.clients = append(l.clients, pb.NewGRPCInferenceServiceClient(conn))
	}
	every := time.Duration(float64(time.Second) / l.rate)
	for n := range z.apps {
		l.all.Go(func() {
			// Apps begin one after another, evenly.
			next := time.NewTimer(every * time.Duration(n) / time.Duration(z.apps))
			defer next.Stop()
			for k := n; ; k++ {
				select {
				case <-ctx.Done():
					return
				case <-next.C:
				}
				next.Reset(every)
				l.all.Go(func() { l.one(appName(n), l.clients[k%len(l.clients)]) })
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// end waits for the queries that are under way.
func (l *load) end() {
	l.stop()
	l.all.Wait()
}

func (l *load) one(app string, c pb.GRPCInferenceServiceClient) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*objective) // of a query that hangs
	defer cancel()
	l.sent.Add(1)
	_, err := c.ModelInfer(ctx, oip.EncodeRequest(app, "", "", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 1}, Data: make([]byte, 4)}}, nil))
	switch status.Code(err) {
	case codes.OK:
		l.answered.Add(1)
		return
	case codes.DeadlineExceeded:
		l.late.Add(1)
	case codes.Unavailable, codes.ResourceExhausted, codes.NotFound:
		l.again.Add(1)
	default:
		l.failed.Add(1)
	}
	l.last.Store(&err)
}

// tally is what came of queries up to now.
type tally struct{ answered, late, again, failed int64 }

func (l *load) tally() tally {
	return tally{l.answered.Load(), l.late.Load(), l.again.Load(), l.failed.Load()}
}

func (a tally) since(b tally) tally {
	return tally{a.answered - b.answered, a.late - b.late, a.again - b.again, a.failed - b.failed}
}
