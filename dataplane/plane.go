package dataplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/limits"
	"github.com/sluice-serving/sluice/tensor"
)

// Config is what a plane is made of.
type Config struct {
	Spec   *serving.Spec
	Engine *engine.Engine // fresh; the plane owns it from now on
	// Backend returns what runs instances on a worker.
	Backend func(serving.WorkerID) Backend
	// Initial is in force from the start, with what was learned of apps in an earlier run.
	Initial  *plan.Plan
	Recalled []engine.Recalled
	// Wiring is by StageID; stages beyond its end have the default.
	Wiring []Wiring
	// Planner answers the engine's requests for plans; PlanTimeout bounds its thinking, after which the plan in force
	// stays (default 5 s).
	Planner     plan.Planner
	PlanTimeout time.Duration
	// RunTimeout bounds one batch on a runtime; one that takes longer counts its instance as lost (default 60 s).
	RunTimeout time.Duration
	// LaunchTimeout bounds the launch of an instance or the load of a variant (default 10 min).
	LaunchTimeout time.Duration
	// Outcome is told how every query ended, on the owner goroutine; nil for none.
	Outcome func(report.Outcome)
	// Observe sees every step, on the owner goroutine; nil for none. The slices must not be kept.
	Observe func(now serving.Time, in []engine.Input, out []engine.Decision)
	// Trouble is told of failures that no query's answer reports: launches that failed, runtimes that were lost. Nil
	// for none.
	Trouble func(error)
	// Rows is how many rows of a tensor a stage may send on for one query (default limits.Rows).
	Rows int
	// States keeps the states of stateful stages; nil keeps them in memory alone. State bounds one of them, in bytes
	// (default limits.StateBytes), StatesHeld those that are in memory (default limits.AllStatesBytes): the ones unused
	// for longest are left to States, or forgotten without it.
	States     StateStore
	State      int
	StatesHeld int64
	// Settle, for tests, is called after every wake-up and returns when all that happens at this instant has been
	// handed in; nil takes what is there.
	Settle func()
}

// Plane is a running data plane.
type Plane struct {
	c     Config
	start time.Time
	world atomic.Pointer[serving.Spec]

	mu       sync.Mutex
	inbox    []message
	lastID   serving.QueryID
	open     map[session]*opened // streams
	leased   atomic.Int32        // of them, those that lapse
	draining bool
	closed   bool
	wake     chan struct{}
	done     chan struct{}

	// Owned by the owner goroutine from here on.
	spare     []message
	in        []engine.Input
	calls     map[serving.QueryID]*call
	instances map[serving.InstanceID]*instance
	jobs      map[serving.BatchID]*job
	graphs    []*graph // by AppID; nil for apps of one stage
	sent      []int32  // what Emitted of the inputs of one step is made of
	states    *states
	helpers   sync.WaitGroup // goroutines of instances and planner
	cancel    context.CancelFunc
	ctx       context.Context
	idle      []chan struct{} // closed when nothing is pending
}

// message is one thing handed to the owner: an input with what belongs to it, or a question.
type message struct {
	in     engine.Input
	call   *call
	job    *job
	ask    func(*engine.Engine)
	graphs []*graph // of apps that have come
}

// call is a query between its acceptance and its answer.
type call struct {
	request *Request // without its inputs once there is a journey
	arrived serving.Time
	reply   func(*Response, error)
	cause   error           // what a backend said last
	outputs []tensor.Tensor // of an app of one stage
	journey *journey        // through an app of several
}

// New starts a plane. Close it to release everything.
func New(c Config) (*Plane, error) {
	if c.Spec == nil || c.Engine == nil || c.Backend == nil {
		return nil, errors.New("dataplane: spec, engine and backend are required")
	}
	if c.PlanTimeout <= 0 {
		c.PlanTimeout = 5 * time.Second
	}
	if c.RunTimeout <= 0 {
		c.RunTimeout = time.Minute
	}
	if c.LaunchTimeout <= 0 {
		c.LaunchTimeout = 10 * time.Minute
	}
	if c.Trouble == nil {
		c.Trouble = func(error) {}
	}
	if c.Rows <= 0 {
		c.Rows = limits.Rows
	}
	if c.State <= 0 {
		c.State = limits.StateBytes
	}
	if c.StatesHeld <= 0 {
		c.StatesHeld = limits.AllStatesBytes
	}
	graphs, err := newGraphs(c.Spec, c.Wiring, 0)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		c: c, start: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}),
		calls: make(map[serving.QueryID]*call), open: make(map[session]*opened),
		instances: make(map[serving.InstanceID]*instance), jobs: make(map[serving.BatchID]*job),
		graphs: graphs, states: newStates(c.States, c.State, c.StatesHeld, c.Trouble),
	}
	p.world.Store(c.Spec)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.own()
	return p, nil
}

// spec returns the tables in force. They only ever grow, so that what was looked up in older ones stays true.
func (p *Plane) spec() *serving.Spec { return p.world.Load() }

// Grow puts a larger world into force. Whoever submits afterwards may ask for what is new in it. It fails when the
// world does not grow out of the one in force.
func (p *Plane) Grow(g *engine.Growth) error {
	if err := g.Spec.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := g.Spec.CheckGrowth(p.spec()); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	graphs, err := newGraphs(g.Spec, p.c.Wiring, len(p.spec().Apps))
	if err != nil {
		return err
	}
	if p.closed {
		return errors.New("dataplane: the plane is closed")
	}
	p.world.Store(g.Spec)
	p.inbox = append(p.inbox, message{in: engine.NewSpecGrown(g), graphs: graphs})
	p.signal()
	return nil
}

// Now returns the time since the plane started: the clock of its engine.
func (p *Plane) Now() serving.Time { return serving.Time(time.Since(p.start)) }

// Infer answers a request, or says why not with an *Error. When ctx ends first the query is cancelled: queued work is
// taken back, running work finishes unheard.
func (p *Plane) Infer(ctx context.Context, r *Request) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Outcome: serving.Cancelled, Reason: "the client went away", Cause: err}
	}
	type answer struct {
		response *Response
		err      error
	}
	answers := make(chan answer, 1)
	id := p.Submit(r, func(response *Response, err error) { answers <- answer{response, err} })
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
		if id != 0 {
			p.Cancel(id)
		}
		a := <-answers
		return a.response, a.err
	}
}

// Submit hands in a request and returns its number at once; reply is called exactly once, from the owner goroutine (it
// must not block), or before Submit returns when the plane takes nothing any more, in which case the number is 0.
func (p *Plane) Submit(r *Request, reply func(*Response, error)) serving.QueryID {
	p.mu.Lock()
	if p.draining || p.closed {
		p.mu.Unlock()
		reply(nil, &Error{Outcome: serving.Refused, Reason: "the server is shutting down", RetryAfter: time.Second})
		return 0
	}
	p.lastID++
	id := p.lastID
	now := p.Now()
	q := serving.Query{
		ID: id, App: r.App, Arrived: now, Items: int32(max(r.Items, 1)), Priority: r.Priority,
		MinAccuracy: r.MinAccuracy, Variant: r.Variant, Stream: StreamNumber(r.Stream),
	}
	timeout := r.Timeout
	if timeout <= 0 && r.App >= 0 && int(r.App) < len(p.spec().Apps) {
		timeout = p.spec().Apps[r.App].SLO.Latency
	}
	q.Deadline = now.Add(timeout)
	p.heard(r, &q)
	p.inbox = append(p.inbox, message{
		in: engine.NewQueryArrived(q), call: &call{request: r, arrived: now, reply: reply},
	})
	p.mu.Unlock()
	if r.Queued != nil {
		r.Queued()
	}
	p.signal()
	return id
}

// Cancel gives up a query: its client no longer waits. A query that has ended already is left alone.
func (p *Plane) Cancel(id serving.QueryID) {
	p.send(message{in: engine.NewQueryCancelled(id)})
}

func (p *Plane) send(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hand(m)
}

// hand is send for a caller that holds the lock.
func (p *Plane) hand(m message) {
	if !p.closed {
		p.inbox = append(p.inbox, m)
		p.signal()
	}
}

func (p *Plane) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Inspect runs f on the owner goroutine, between steps, and returns when it has run. f must not keep what it sees. It
// returns false, without running f, when the plane is closed.
func (p *Plane) Inspect(f func(*engine.Engine)) bool {
	ran := make(chan struct{})
	p.send(message{ask: func(e *engine.Engine) { f(e); close(ran) }})
	select {
	case <-ran:
		return true
	case <-p.done:
		select {
		case <-ran:
			return true
		default:
			return false
		}
	}
}

// Recall hands in what was learned of an app in an earlier run.
func (p *Plane) Recall(r engine.Recalled) {
	p.send(message{in: engine.NewIdleRecalled(&r)})
}

// Adopt hands a plan to the engine.
func (p *Plane) Adopt(pl *plan.Plan) {
	p.send(message{in: engine.NewPlanReady(pl)})
}

// SetPrice tells what a machine of a device type costs from now on, in $/h. The price must be finite and at least 0.
func (p *Plane) SetPrice(d serving.DeviceTypeID, price float64) {
	p.send(message{in: engine.NewPriceChanged(d, price)})
}

// Lose reports a worker gone: every instance on it is lost.
func (p *Plane) Lose(w serving.WorkerID) {
	p.send(message{ask: func(e *engine.Engine) {
		for _, i := range e.Fleet().Live() {
			if i.Worker() == w {
				p.in = append(p.in, engine.NewInstanceLost(i.ID()))
			}
		}
	}})
}

// Drain refuses new queries and returns when every accepted one has ended, or with ctx's error.
func (p *Plane) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	idle := make(chan struct{})
	p.send(message{ask: func(*engine.Engine) { p.idle = append(p.idle, idle) }})
	select {
	case <-idle:
		return nil
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the plane at once: queries that have not ended are refused, instances are released. It returns when
// nothing of the plane runs any more.
func (p *Plane) Close() {
	p.mu.Lock()
	p.draining = true
	already := p.closed
	p.closed = true
	p.mu.Unlock()
	if !already {
		p.cancel()
		p.signal()
	}
	<-p.done
}
