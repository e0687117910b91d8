package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/bounded"
)

// FuzzRawHTTP sends bytes to a server as a client that then sends no more. Whatever they are, it takes little time and
// memory, what comes back is HTTP, and nothing is answered 500.
func FuzzRawHTTP(f *testing.F) {
	p := newFakeService()
	s, err := server.New(server.Config{HTTP: "127.0.0.1:0", GRPC: "off", Admin: "off", MaxRequest: 1 << 20}, p)
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	f.Cleanup(func() { stop(); <-ended })
	request := func(head, body string) []byte {
		return []byte("POST " + model + "/infer HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n\r\n" + body)
	}
	f.Add([]byte("GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	f.Add(request("Content-Length: 9999", two))
	f.Add(request("Transfer-Encoding: chunked", "5\r\n{\"inp\r\n0\r\n\r\n"))
	f.Add(request("Transfer-Encoding: chunked\r\nContent-Length: 3", "zz"))
	f.Add(request("Content-Encoding: gzip\r\nContent-Length: 2", "\x1f\x8b"))
	f.Add(request("Inference-Header-Content-Length: -1\r\nContent-Length: 2", "{}"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\xa5\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<16 {
			return // the kernel's buffers would have to be emptied while writing
		}
		defer bounded.Watch(t, bounded.Fuzz(len(raw)))()
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(bounded.Patience / 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(raw); err != nil {
			return // it has closed the connection already
		}
		_ = c.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(io.LimitReader(c, 1<<20))
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatalf("no end after %v", bounded.Patience/2)
		}
		if len(got) == 0 || !bytes.HasPrefix(got, []byte("HTTP/1.")) {
			return // closed, or HTTP/2
		}
		r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		defer r.Body.Close()
		if r.StatusCode == http.StatusInternalServerError {
			t.Errorf("%q", got)
		}
	})
}
