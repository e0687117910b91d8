package scale

import (
	"net"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/internal/fakeworker"
)

// workers answer at the addresses of all simulated pods. A batch takes a fixed time.
type workers struct {
	*fakeworker.Workers
	port int
}

func startWorkers(t *testing.T, takes time.Duration) *workers {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := &workers{Workers: fakeworker.New(func(int64) time.Duration { return takes })}
	if w.port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, w)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-ended
	})
	return w
}
