package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/provider"
)

// Defaults of Config.
const (
	DefaultStart = 2 * time.Minute
	DefaultGrace = 10 * time.Second
)

// Config says how machines are started.
type Config struct {
	// Command returns the program of a worker and its arguments. {port} and {worker} in them are replaced.
	Command func(provider.Worker) []string
	// Start is how long a process may take to be ready, Grace how long it may take to end once it is asked to. 0 means
	// DefaultStart and DefaultGrace.
	Start, Grace time.Duration
	// Log takes what the processes print, line by line, and what becomes of them; nil for nothing. Several goroutines
	// may call it at once.
	Log func(worker, line string)
}

// Supply is a provider.Supply. Close ends its processes.
type Supply struct {
	c Config

	mu      sync.Mutex
	running map[string]*machine // by the worker's name
	closed  bool

	watcher provider.Watcher
}

// machine is a process that was started for a worker.
type machine struct {
	proc    *process
	address string
	ready   chan struct{} // closed once it is ready or has failed
	err     error         // read after ready
	took    time.Duration // until it was ready; read after ready
	given   bool          // Acquire has returned it; under mu
}

// New returns a supply that has started nothing yet.
func New(c Config) *Supply {
	if c.Start <= 0 {
		c.Start = DefaultStart
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.Log == nil {
		c.Log = func(string, string) {}
	}
	return &Supply{c: c, running: make(map[string]*machine)}
}

// Acquire implements provider.Supply.
func (s *Supply) Acquire(ctx context.Context, w provider.Worker) (provider.Machine, error) {
	m, err := s.machine(ctx, w)
	if err != nil {
		return provider.Machine{}, err
	}
	select {
	case <-m.ready:
	case <-ctx.Done():
		return provider.Machine{}, ctx.Err()
	}
	if m.err != nil {
		return provider.Machine{}, m.err
	}
	out := provider.Machine{Address: m.address}
	s.mu.Lock()
	if !m.given {
		out.Started = m.took
	}
	m.given = true
	s.mu.Unlock()
	return out, nil
}

// machine returns the process of a worker, started if there is none.
func (s *Supply) machine(ctx context.Context, w provider.Worker) (*machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("no more machines are started: the server is shutting down")
	}
	if m := s.running[w.Name]; m != nil {
		return m, nil
	}
	port, err := s.port(ctx)
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("{port}", strconv.Itoa(port), "{worker}", w.Name)
	command := s.c.Command(w)
	if len(command) == 0 {
		return nil, fmt.Errorf("worker %q: there is no command that starts its machine", w.Name)
	}
	args := make([]string, len(command))
	for k, a := range command {
		args[k] = fill.Replace(a)
	}
	m := &machine{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), ready: make(chan struct{}),
	}
	if m.proc, err = start(args, s.c.Grace, func(line string) { s.c.Log(w.Name, line) }); err != nil {
		return nil, fmt.Errorf("worker %q: %w", w.Name, err)
	}
	s.running[w.Name] = m
	go s.follow(w, m)
	return m, nil
}

// follow waits until a machine is ready, and then until it ends.
func (s *Supply) follow(w provider.Worker, m *machine) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), s.c.Start)
	defer cancel()
	go func() {
		select {
		case <-m.proc.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := awaitReady(ctx, m.address)
	m.took = max(time.Since(began), 1)
	if err != nil {
		m.err = fmt.Errorf("worker %q: its machine is not ready after %v: %w", w.Name, m.took.Round(time.Second), err)
		select {
		case <-m.proc.done:
			m.err = fmt.Errorf("worker %q: its machine ended before it was ready (%s): %s", w.Name, m.proc.how(),
				m.proc.lastLines())
		default:
		}
		s.forget(w, m)
		close(m.ready)
		m.proc.end()
		return
	}
	close(m.ready)
	<-m.proc.done
	if !s.forget(w, m) {
		return // it was given back
	}
	s.c.Log(w.Name, "its machine has ended: "+m.proc.how())
	s.watcher.Tell(provider.Event{Worker: w.Name, Kind: provider.Lost, Why: "its process ended: " + m.proc.how()})
}

// forget has the next Acquire start another machine; false where that was so already.
func (s *Supply) forget(w provider.Worker, m *machine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[w.Name] != m {
		return false
	}
	delete(s.running, w.Name)
	return true
}

// Release implements provider.Supply: the process is asked to end, and ended after its grace.
func (s *Supply) Release(ctx context.Context, w provider.Worker) error {
	s.mu.Lock()
	m := s.running[w.Name]
	delete(s.running, w.Name)
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	m.proc.end()
	select {
	case <-m.proc.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch implements provider.Supply.
func (s *Supply) Watch(f func(provider.Event)) (stop func()) { return s.watcher.Watch(f) }

// Close ends all processes and returns when they have ended.
func (s *Supply) Close() error {
	s.mu.Lock()
	s.closed = true
	all := s.running
	s.running = make(map[string]*machine)
	s.mu.Unlock()
	for _, m := range all {
		m.proc.end()
	}
	for _, m := range all {
		<-m.proc.done
	}
	return nil
}

// PID returns the identifier of the process of a worker's machine; 0 where there is none.
func (s *Supply) PID(worker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.running[worker]; m != nil {
		return m.proc.childPID()
	}
	return 0
}

// port returns a port that was free a moment ago and that no machine of this supply was given, whether or not it
// listens on it yet.
func (s *Supply) port(ctx context.Context) (int, error) {
	given := make(map[string]bool, len(s.running))
	for _, m := range s.running {
		given[m.address] = true
	}
	for {
		var c net.ListenConfig
		l, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		defer func() { _ = l.Close() }() // on return, so that the next is another
		if at := l.Addr().(*net.TCPAddr); !given[at.String()] {
			return at.Port, nil
		}
	}
}

// readyEvery is the time between two questions whether a machine is ready.
const readyEvery = 50 * time.Millisecond

// awaitReady returns when the server at an address says that it is ready.
func awaitReady(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := pb.NewGRPCInferenceServiceClient(conn)
	for {
		answer, err := client.ServerReady(ctx, &pb.ServerReadyRequest{}, grpc.WaitForReady(true))
		if err == nil && answer.GetReady() {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(readyEvery):
		}
	}
}
