package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/tensor"
)

// silent opens connections that say nothing and returns how many stay open.
func silent(t *testing.T, address string, n int) (conns []net.Conn) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	return conns
}

// Connections that ask for nothing give their places to those that do, on the admin address too.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	s := start(t, server.Config{Connections: 80, ConnectionsEach: 80,
		AdminHandlers: map[string]http.Handler{"/metrics": ok}})
	for listener, url := range map[string]string{
		"admin": "http://" + s.AdminAddr() + "/metrics", "http": "http://" + s.HTTPAddr() + model,
	} {
		silent(t, strings.Split(url, "/")[2], 100) // with the reserve of the address
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		waitFor(t, func() bool {
			resp, err := c.Get(url)
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK && count(s, listener, "closed", "silent") > 0
		})
	}
}

func count(s *running, listener, event, reason string) uint64 {
	n := uint64(0)
	for _, x := range s.Connections() {
		if x.Listener == listener && x.Event == event && x.Reason == reason {
			n += x.Count
		}
	}
	return n
}

// One host with as many silent connections as it likes keeps nobody from asking for health, on any port. What it cannot
// have is refused at once, and counted.
func TestSilentConnectionsDoNotBlockProbes(t *testing.T) {
	for _, x := range []struct {
		name   string
		config server.Config
		reason string
	}{
		{"of all", server.Config{Connections: 8, ConnectionsEach: 100}, "connections"},
		{"of an address", server.Config{Connections: 100, ConnectionsEach: 8}, "connections_per_address"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := start(t, x.config)
			conns := silent(t, s.HTTPAddr(), 8) // the limit, but not the reserve of its address
			waitFor(t, func() bool { return count(s, "http", "accepted", "") == 8 })
			if code, _, body := s.do(t, "GET", "/v2/health/ready", ""); code != 200 {
				t.Errorf("a probe: %d %s", code, body)
			}
			if code, _, body := s.do(t, "POST", model+"/infer", two); code != 503 ||
				!strings.Contains(body, "server.limits.connections") {
				t.Errorf("a query: %d %s: want 503 that names the limit", code, body)
			}
			more := silent(t, s.HTTPAddr(), 20)
			waitFor(t, func() bool { return count(s, "http", "refused", x.reason) >= 16 })
			closed := 0
			for _, c := range more {
				_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					closed++
				}
			}
			if closed < 16 {
				t.Errorf("%d of 20 further connections were closed", closed)
			}
			for _, c := range append(conns, more...) {
				_ = c.Close()
			}
			waitFor(t, func() bool { return count(s, "http", "closed", "ended") >= 8 })
			waitFor(t, func() bool { code, _, _ := s.do(t, "POST", model+"/infer", two); return code == 200 })
			if _, err := s.client(t).ServerLive(t.Context(), &pb.ServerLiveRequest{}); err != nil {
				t.Errorf("gRPC: %v", err)
			}
		})
	}
}

// A client that does not read its answer loses the connection.
func TestReadersThatDoNotReadAreClosed(t *testing.T) {
	s := start(t, server.Config{WriteTimeout: 50 * time.Millisecond})
	s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) {
		return &dataplane.Response{Outputs: []tensor.Tensor{
			{Name: "y", DType: tensor.Uint8, Shape: []int64{1, 64 << 20}, Data: make([]byte, 64<<20)},
		}}, nil
	}
	c := silent(t, s.HTTPAddr(), 1)[0]
	body := strings.Replace(two, `"id"`, `"parameters":{"binary_data_output":true},"id"`, 1)
	if _, err := fmt.Fprintf(c, "POST %s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", model,
		len(body), body); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return count(s, "http", "closed", "write_timeout") == 1 })
}

// A stream without messages ends.
func TestIdleStreamsEnd(t *testing.T) {
	s := start(t, server.Config{StreamIdle: 50 * time.Millisecond})
	stream, err := s.client(t).ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Aborted ||
		!strings.Contains(err.Error(), "server.limits.stream_idle") {
		t.Errorf("%v: want Aborted that names the limit", err)
	}
}
