package front

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// BenchmarkPassOn compares a query that the front answers itself with one that it passes on to another front, over HTTP
// and gRPC. Client, fronts and engine are one process, and their allocations are counted together.
func BenchmarkPassOn(b *testing.B) {
	runs := startRuns(b)
	holder, other := startFront(b, "a", runs, time.Second), startFront(b, "b", noRuns{}, time.Second)
	holder.held(holder.holder("a"))
	other.held(holder.holder("a"))
	for _, x := range []struct {
		name string
		f    *Front
	}{{"direct", holder}, {"passed", other}} {
		b.Run("http/"+x.name, func(b *testing.B) {
			b.ReportAllocs()
			c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					r, err := c.Post("http://"+x.f.HTTPAddr()+"/v2/models/app/infer", "application/json",
						strings.NewReader(question))
					if err != nil || r.StatusCode != http.StatusOK {
						b.Errorf("it answers %v, %v", r, err)
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
				}
			})
		})
		b.Run("grpc/"+x.name, func(b *testing.B) {
			b.ReportAllocs()
			conn, err := grpc.NewClient("passthrough:///"+x.f.GRPCAddr(),
				grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			c := pb.NewGRPCInferenceServiceClient(conn)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := c.ModelInfer(b.Context(), grpcQuestion()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
