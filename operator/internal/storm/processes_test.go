package storm

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/operator/controller"
	"github.com/sluice-serving/sluice/operator/dispatcher"
	"github.com/sluice-serving/sluice/operator/supply"
)

// process is an operator or a dispatcher, from its start to its end.
type process struct {
	name   string
	ip     string
	link   *link
	stop   context.CancelFunc
	ended  chan struct{}
	begun  time.Time
	cutAt  time.Time // when it was cut from the API server last
	killed bool
	told   bool        // to stop
	ready  atomic.Bool // its probe says so

	mu         sync.Mutex
	dispatcher *dispatcher.Dispatcher // nil until it listens
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) held() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dispatcher == nil {
		return nil
	}
	return p.dispatcher.Held()
}

// launch begins a process.
func (w *storm) launch(name string, run func(context.Context, *process) error) *process {
	w.count++
	p := &process{name: fmt.Sprintf("%s-%d", name, w.count), ip: fmt.Sprintf("10.2.%d.%d", w.count/250, 1+w.count%250),
		link: newLink(w.api, w.script.seed*1000+uint64(w.count)), ended: make(chan struct{}),
		begun: time.Now()}
	p.link.set(w.faults)
	if clock := rand.New(rand.NewPCG(w.script.seed, uint64(1000+w.count))); clock.IntN(2) == 0 {
		p.link.fast.Store(clock.Int64N(int64(20*time.Minute)) - int64(10*time.Minute))
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	w.counts.Starts++
	go func() {
		defer close(p.ended)
		err := run(ctx, p)
		p.link.kill() // what it left running ends with a process
		w.net.Kill(p.ip, false)
		_, _ = fmt.Fprintf(&w.log, "%v %s ended: %v\n", time.Since(w.begun), p.name, err)
	}()
	return p
}

// kill ends a process at once: nothing that it does from now on reaches anybody. A node that vanishes with it does not
// even refuse connections.
func (w *storm) kill(p *process, vanishes bool) {
	p.killed = true
	p.link.kill()
	w.net.Kill(p.ip, vanishes)
	p.stop()
	w.unkind = time.Now()
}

func (w *storm) operator() *process {
	return w.launch("operator", func(ctx context.Context, p *process) error {
		m, err := controller.New(p.link.config(), controller.Options{Image: "sluice", Metrics: "0", Health: "0",
			Elect: true, ElectIn: namespace, Namespaces: []string{namespace}})
		if err != nil {
			return err
		}
		return m.Start(ctx)
	})
}

func (w *storm) dispatcher() *process {
	return w.launch("d", func(ctx context.Context, p *process) error {
		source, err := supply.NewSource(ctx, p.link.config(), namespace, fleetName)
		if err != nil {
			return err
		}
		defer source.Close()
		log := slog.New(slog.NewTextHandler(&w.log, nil)).With("pod", p.name)
		d, err := dispatcher.New(dispatcher.Options{Config: p.link.config(), Namespace: namespace, Fleet: fleetName,
			Pod: p.name, Address: p.ip, HTTP: p.ip + ":8000", GRPC: p.ip + ":8001", Admin: p.ip + ":8002",
			Lease: 3 * time.Second, Renew: time.Second, NotReady: 2 * time.Second, Drain: 30 * time.Second,
			Supply: source.Supplier(log), Net: w.net.Of(p.ip), Log: log})
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.dispatcher = d
		p.mu.Unlock()
		return d.Run(ctx)
	})
}

// probe asks dispatchers whether they are to get queries, as kubelets do.
func (w *storm) probe() {
	for _, p := range w.dispatchers {
		if p.killed || p.over() {
			continue
		}
		w.asked.Go(func() {
			ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
			defer done()
			code, _ := w.ask(ctx, "http://"+p.ip+":8002/readyz", nil)
			p.ready.Store(code == http.StatusOK)
		})
	}
}

// ask sends a request from outside of the fleet and returns the answer's status, 0 for none, and text.
func (w *storm) ask(ctx context.Context, url string, body io.Reader) (int, string) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	must(err)
	answer, err := w.client.Do(r)
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
