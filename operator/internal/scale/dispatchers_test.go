package scale

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/dispatcher"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/supply"
)

// calls counts calls of the API server by verb and resource. Watches are not counted, they last; leases are counted
// apart.
type calls struct {
	mu     sync.Mutex
	by     map[string]int
	leases int
}

// counted has a client's calls counted.
func (c *calls) counted(api *rest.Config) *rest.Config {
	out := rest.CopyConfig(api)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			c.add(r)
			return next.RoundTrip(r)
		})
	})
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// resources are what is looked for in paths.
var resources = []string{"pods", "nodes", "configmaps", "inferenceapps", "fleets", "events"}

func (c *calls) add(r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(r.URL.Path, "/leases") {
		c.leases++
		return
	}
	kind := "other"
	parts := strings.Split(r.URL.Path, "/")
	for _, x := range resources {
		if slices.Contains(parts, x) {
			kind = x
		}
	}
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[r.Method+" "+kind]++
}

// seen is what was counted so far.
func (c *calls) seen() counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counted{maps.Clone(c.by), c.leases}
}

type counted struct {
	by     map[string]int
	leases int
}

// since is what was counted after another count.
func (c counted) since(before counted) counted {
	out := counted{map[string]int{}, c.leases - before.leases}
	for k, n := range c.by {
		if d := n - before.by[k]; d > 0 {
			out.by[k] = d
		}
	}
	return out
}

func (c counted) total() (n int) {
	for _, x := range c.by {
		n += x
	}
	return n
}

func (c counted) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(c.by)) {
		out = append(out, fmt.Sprintf("%s %d", k, c.by[k]))
	}
	return strings.Join(out, ", ")
}

// keepVariable names a folder for profiles and logs that are to be looked at.
const keepVariable = "SLUICE_KEEP"

// dispatchers are replicas of a fleet's front in this process, with all of their code. Their workers answer at another
// port than pods do, since dispatchers of other tests may listen there.
type dispatchers struct {
	calls calls
	grpc  []string
}

func startDispatchers(t *testing.T, c *cluster.Cluster, ns string, n, port int) *dispatchers {
	t.Helper()
	d := &dispatchers{}
	var to io.Writer = &lines{t: t}
	level := slog.LevelError
	if folder := os.Getenv(keepVariable); folder != "" {
		file, err := os.Create(filepath.Join(folder, "dispatchers.log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		to, level = file, slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	for k := range n {
		api := d.calls.counted(c.Config)
		source, err := supply.NewSource(t.Context(), api, ns, fleetName)
		if err != nil {
			t.Fatal(err)
		}
		x, err := dispatcher.New(dispatcher.Options{
			Config: api, Namespace: ns, Fleet: fleetName, Pod: fmt.Sprintf("dispatcher-%d", k), Address: "127.0.0.1",
			HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0", Admin: "127.0.0.1:0", Lease: 15 * time.Second,
			Renew: time.Second, Hold: 10 * time.Second, Waiting: 4096, Drain: 30 * time.Second, Log: log,
			Supply: func(_ int, text []byte) (provider.Supply, func(), error) {
				m, err := cell.Decode(string(text))
				if err != nil {
					return nil, nil, err
				}
				s, err := supply.New(context.Background(), supply.Config{Source: source, Machines: m, Port: port,
					Log: log})
				if err != nil {
					return nil, nil, err
				}
				return s, s.Close, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		d.grpc = append(d.grpc, x.GRPCAddr())
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- x.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Errorf("a dispatcher ended: %v", err)
			}
			source.Close()
		})
	}
	return d
}

// lines writes a log to a test's, until that ends.
type lines struct {
	t  *testing.T
	mu sync.Mutex
	n  int
}

// mostLines bounds what is shown: an error of one cell may come with every machine.
const mostLines = 50

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.n <= mostLines {
		l.t.Logf("%s", strings.TrimSpace(string(p)))
	}
	return len(p), nil
}
