package runner

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	hostserver "github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Run is a configuration of a cell that is served.
type Run struct {
	Cell     int
	Version  string // of the configuration
	Profiled *host.Profiled
	Server   *hostserver.Server
	// Machines is the supply of its machines; nil where none is supplied.
	Machines provider.Supply
	// Conn calls the run over gRPC, for streams.
	Conn *grpc.ClientConn
	// Since is when it began.
	Since time.Time

	users   atomic.Int64 // queries that it answers
	closed  atomic.Bool  // it takes no more
	retired chan struct{}
	end     context.CancelFunc
	served  chan error
	clean   func()
	shares  cell.Shares
	apps    map[string]bool
}

// start opens a configuration and begins to serve it. It need not be ready when start returns.
func start(ctx context.Context, number int, folder string, files map[string]string, before Before,
	supply provider.Supply, network listen.Net, certificate func(context.Context) *x509.Certificate,
	log *slog.Logger) (_ *Run, err error) {
	for name, text := range files {
		if filepath.Base(name) != name || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("the cell's configuration has a file named %q, which is no plain name", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	machines, err := cell.Decode(cmp.Or(files[cell.KeyMachines], "{}"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cell.KeyMachines, err)
	}
	opened, err := host.Open(filepath.Join(folder, cell.KeyConfig), host.Options{
		Notice: func(s string) { log.Info(s) }, Machines: supply, Where: where(machines),
		Net: network,
	})
	if err != nil {
		return nil, err
	}
	var profiles []string
	if _, ok := files[cell.KeyProfile]; ok && len(opened.File().Profiles) == 0 {
		profiles = append(profiles, filepath.Join(folder, cell.KeyProfile))
	}
	profiled, err := measuring.EnsureProfile(ctx, opened, profiles...)
	if err != nil {
		return nil, err
	}
	profiled = profiled.Expecting(before.Rates)
	hurry := make(chan struct{}) // the front says when it is not ready; a run has nobody to tell
	close(hurry)
	server, err := hostserver.New(ctx, profiled, hostserver.Options{
		HTTP: "off", GRPC: "127.0.0.1:0", Admin: "off", Hurry: hurry, Log: log, Starts: before.Starts,
		Certificate: certificate,
	})
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+server.GRPCAddr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), network.GRPC(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<31-1), grpc.MaxCallSendMsgSize(1<<31-1)))
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	serving, end := context.WithCancel(context.Background())
	r := &Run{Cell: number, Profiled: profiled, Server: server, Machines: supply, Conn: conn, Since: time.Now(),
		retired: make(chan struct{}), end: end, served: make(chan error, 1),
		apps: make(map[string]bool)}
	for _, name := range profiled.AppNames() {
		r.apps[name] = true
	}
	go func() { r.served <- server.Serve(serving) }()
	return r, nil
}

// seen is what the run has seen, for the one that follows it.
func (r *Run) seen() Before {
	out := Before{Rates: r.Rates()}
	if s, ok := r.Machines.(interface {
		Starts() map[string]time.Duration
	}); ok {
		out.Starts = s.Starts()
	}
	return out
}

// use takes the run for a query; false when it takes no more. Done ends the use.
func (r *Run) use() bool {
	r.users.Add(1)
	if r.closed.Load() {
		r.users.Add(-1)
		return false
	}
	return true
}

// Has reports whether the run's configuration has an app: one that was just added comes with the next run.
func (r *Run) Has(app string) bool { return r.apps[app] }

// Done ends the use of the run by a query.
func (r *Run) Done() { r.users.Add(-1) }

// ServeHTTP answers a query over HTTP.
func (r *Run) ServeHTTP(w http.ResponseWriter, q *http.Request) { r.Server.Handler().ServeHTTP(w, q) }

// Call answers a unary call whose message is still encoded.
func (r *Run) Call(ctx context.Context, method string, in mem.BufferSlice) (mem.BufferSlice, error) {
	return r.Server.Call(ctx, method, in)
}

// Retired is closed when the run takes no more queries. Streams to it are then to end.
func (r *Run) Retired() <-chan struct{} { return r.retired }

// retire takes no more queries, waits until those that it has are answered, or for limit, and ends the run.
func (r *Run) retire(limit time.Duration, log *slog.Logger) {
	r.closed.Store(true)
	close(r.retired)
	r.Server.Detach()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for r.users.Load() > 0 && time.Now().Before(deadline) {
		<-tick.C
	}
	if n := r.users.Load(); n > 0 {
		log.Warn("a run ends with queries that it did not finish", "cell", r.Cell, "queries", n, "after", limit)
	}
	_ = r.Conn.Close()
	r.end()
	if err := <-r.served; err != nil {
		log.Warn("a run ended with an error", "cell", r.Cell, "error", err)
	}
	if r.clean != nil {
		r.clean()
	}
}

// where tells machines that run already where a model is that was just added. Their own machines.json follows within a
// minute or two. A model that needs a secret waits for that.
func where(m *cell.Machines) func(model string) (uri, digest string) {
	return func(model string) (uri, digest string) {
		x := m.Models[model]
		if x.Secret != "" {
			return "", ""
		}
		return x.URI, x.SHA256
	}
}
