package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/policy/plan"
)

// stormLife is a server from its start to its end.
type stormLife struct {
	s     *Server
	ip    string
	http  *http.Client
	grpc  *grpc.ClientConn
	stop  context.CancelFunc
	done  chan error
	calls context.Context // of changes: they end when the server does
	leave context.CancelFunc
	token string
	dead  bool // it was killed: what it says since does not count
}

// start begins a life. It returns false where the system cannot be used so.
func (w *storm) start() bool {
	l := &stormLife{ip: fmt.Sprintf("10.0.0.%d", w.counts.Starts+1), done: make(chan error, 1)}
	o, err := host.Open(filepath.Join(w.dir, "sluice.yaml"), host.Options{Net: w.net.Of(l.ip)})
	must(err)
	p, err := o.Begin(context.Background())
	var s *Server
	if err == nil {
		s, err = New(context.Background(), p, Options{
			ModelControl: true, Log: slog.New(slog.NewTextHandler(&w.log, nil)), over: w.weather.over,
		})
	}
	switch {
	case w.counts.Starts == 0 && (fault.Of(err) == fault.Config || fault.Of(err) == fault.Missing):
		return false
	case err != nil && w.disk.isFull():
		w.disk.empty()
		return w.start()
	case err != nil:
		w.fail("it does not start: %v", err)
		return false
	case s.planned.PlannerInUse().Provides()&(plan.Tables|plan.Values) != 0:
		must(s.Close())
		return false
	}
	token, err := os.ReadFile(filepath.Join(w.dir, "data", "admin.token"))
	must(err)
	l.s, l.token = s, strings.TrimSpace(string(token))
	w.connect(l)
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.calls, l.leave = context.WithCancel(context.Background())
	go func() { l.done <- s.Serve(ctx) }()
	w.life = l
	w.counts.Starts++
	return true
}

// stop ends a life as a signal does. Changes end, since clients that wait for one would keep the server.
func (w *storm) stop() {
	l := w.life
	l.leave()
	w.changes.Wait()
	l.stop()
	// A query that waits for a cold start may wait for longer than a server that stops does.
	if err := <-l.done; err != nil && !errors.Is(err, context.DeadlineExceeded) && !l.dead && !w.disk.wasFull {
		w.fail("the server ended with: %v", err)
	}
	w.asked.Wait()
	l.http.CloseIdleConnections()
	must(l.grpc.Close())
	// A model of the repository is served when a client says so, in each life anew.
	for name, x := range w.names {
		if name[0] != 'f' {
			x.numbers, x.sure = append(x.numbers, gone), len(x.numbers)
		}
	}
}

// kill ends a life at once: the next one has what is on the disk now.
func (w *storm) kill() {
	synctest.Wait()
	w.life.dead = true
	w.starts++
	next := filepath.Join(filepath.Dir(w.dir), fmt.Sprint(w.starts))
	w.disk.with(func() {
		must(os.CopyFS(next, os.DirFS(w.dir)))
		must(os.Chmod(filepath.Join(next, "data", "admin.token"), 0o600)) // which CopyFS does not keep
	})
	w.net.Kill(w.life.ip, false)
	w.stop()
	w.dir = next
}

// deployment is how a client has a function be what adds a number: it sends the model, then what is to become of it.
func (w *storm) deployment(name string, number int) []stormCall {
	var model []byte
	w.disk.with(func() {
		path := filepath.Join(w.dir, "sent.onnx")
		must(addModel(path, float32(number)))
		var err error
		model, err = os.ReadFile(path)
		must(err)
	})
	sum := sha256.Sum256(model)
	digest := hex.EncodeToString(sum[:])
	b, err := json.Marshal(functions.Deployment{Model: digest, LatencyMS: 1000, Percentile: 99, MaxBatch: 4})
	must(err)
	return []stormCall{{"PUT", functions.PathModels + digest, model}, {"PUT", functions.PathFunctions + name, b}}
}

// outside is where clients are.
const outside = "10.9.0.1"

// connect makes the clients of a life.
func (w *storm) connect(l *stormLife) {
	l.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			must(err)
			return w.net.Dial(ctx, outside, net.JoinHostPort(l.ip, port))
		},
	}}
	var err error
	l.grpc, err = grpc.NewClient("passthrough:///"+net.JoinHostPort(l.ip, "8001"), w.net.Of(outside).GRPC(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
}

// onAdmin has the beginnings of the paths of the admin address.
var onAdmin = regexp.MustCompile("^/(v1|api|debug|metrics|prices)")

// call sends a request and returns the answer's code, 0 for none, and text.
func (w *storm) call(ctx context.Context, l *stormLife, method, path string, body []byte) (int, string) {
	at := "http://localhost:8000"
	if onAdmin.MatchString(path) {
		at = "http://localhost:8002"
	}
	r, err := http.NewRequestWithContext(ctx, method, at+path, bytes.NewReader(body))
	must(err)
	r.Header.Set("Authorization", "Bearer "+l.token)
	if len(body) > 0 && body[0] == '{' {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := l.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}
