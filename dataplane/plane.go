package dataplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/tensor"
)

// Config is what a plane is made of.
type Config struct {
	Spec   *serving.Spec
	Engine *engine.Engine // fresh; the plane owns it from now on
	// Backend returns what runs instances on a worker.
	Backend func(serving.WorkerID) Backend
	// Initial is the plan in force from the start; nil for none. Recalled is what was learned of apps in an earlier
	// run.
	Initial  *plan.Plan
	Recalled []engine.Recalled
	// Wiring is by StageID. It matters for apps of several stages only. Of stages beyond its end nothing is known.
	Wiring []pipeline.Wiring
	// Planner answers the engine's requests for plans; nil for none. After PlanTimeout (default 5 s) it is stopped, and
	// the plan in force stays.
	Planner     plan.Planner
	PlanTimeout time.Duration
	// RunTimeout bounds the run time of a batch. An instance that takes longer counts as lost. 0 takes runFactor times
	// the believed time, at least the app's SLO and a second, and a minute where nothing is believed.
	RunTimeout time.Duration
	// LaunchTimeout bounds the launch of an instance or the load of a variant (default 10 min).
	LaunchTimeout time.Duration
	// Outcome is called for every query that has ended, on the owner goroutine; nil for none.
	Outcome func(report.Outcome)
	// Observe is called after every step of the engine, on the owner goroutine; nil for none. It must not keep the
	// slices.
	Observe func(now serving.Time, in []engine.Input, out []engine.Decision)
	// Crash is called when the engine, or an observer of it, has panicked; nil for none. The process ends when it
	// returns. in is what the engine was told in the step that it did not end.
	Crash func(now serving.Time, in []engine.Input, p *Panic)
	// Trouble is called for failures that no query's answer reports, such as a failed launch or a lost runtime; nil for
	// none. Several goroutines may call it at once.
	Trouble func(error)
	// Rows is the largest number of rows of a tensor that a stage sends on for one query (default limits.Rows).
	Rows int
	// Output bounds the outputs of one query at a stage, in bytes (default limits.OutputBytes).
	Output int64
	// States stores the states of stateful stages; nil keeps them in memory alone. State bounds one state, in bytes
	// (default limits.StateBytes). StatesHeld bounds all that are in memory, in bytes (default limits.AllStatesBytes).
	// Above it those that were not used for longest are dropped from memory, and lost where States is nil.
	States     StateStore
	State      int
	StatesHeld int64
	// Slack says how much time is kept free before the latest start of a query.
	Slack SlackMode
	// Settle is for tests. It is called after every wake-up, and returns when everything that happens at this instant
	// is in the inbox. Nil does not wait.
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
	slack    slack
	open     map[streamKey]*openStream
	declared declarations
	leased   atomic.Int32 // number of leased ones in open
	draining bool
	closed   bool
	wake     chan struct{}
	done     chan struct{}

	// Owned by the owner goroutine from here on.
	spare     []message
	yield     yield
	in        []engine.Input
	calls     map[serving.QueryID]*call
	instances map[serving.InstanceID]*instance
	jobs      map[serving.BatchID]*job
	graphs    map[serving.AppID]*graph // nil for apps of one stage
	sent      []int32                  // memory of Input.Emitted of the inputs of one step
	lengths   []int32                  // and of Input.Lengths
	states    *states
	breakages breakages
	helpers   sync.WaitGroup // goroutines of instances and planner
	cancel    context.CancelFunc
	ctx       context.Context
	drained   []chan struct{} // closed when nothing is pending
	looks     []func(*engine.Engine)
}

// message is sent to the owner goroutine: an input with its call or graphs, a batch that has ended, or a function to
// call before the step, or after it.
type message struct {
	in     engine.Input
	call   *call
	job    *job
	ask    func(*engine.Engine)
	look   func(*engine.Engine)
	graphs map[serving.AppID]*graph // of the apps that a growth brings
}

// call is a query between its acceptance and its answer.
type call struct {
	request  *Request // without its inputs once there is an execution
	arrived  serving.Time
	reply    func(*Response, error)
	partials *partials       // nil for a query with one answer
	gone     bool            // its app or its variant was gone before it reached the engine
	cause    error           // the last error of a backend or a stage
	outputs  []tensor.Tensor // of an app of one stage: of its last answer
	again    bool            // some items of outputs are of later answers; nobody else reads them
	// execution is the query's in an app of several stages, from the start of its first batch on; else nil.
	execution *execution
}

// New starts a plane. Spec, Engine and Backend are required. The caller must close the plane.
func New(c Config) (*Plane, error) {
	if c.Spec == nil || c.Engine == nil || c.Backend == nil {
		return nil, errors.New("dataplane: spec, engine and backend are required")
	}
	if c.PlanTimeout <= 0 {
		c.PlanTimeout = 5 * time.Second
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
	if c.Output <= 0 {
		c.Output = limits.OutputBytes
	}
	if c.State <= 0 {
		c.State = limits.StateBytes
	}
	if c.StatesHeld <= 0 {
		c.StatesHeld = limits.AllStatesBytes
	}
	graphs, err := newGraphs(c.Spec, c.Wiring, c.Spec.FreshSince(&serving.Spec{}).Apps)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		c: c, start: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}),
		calls: make(map[serving.QueryID]*call), open: make(map[streamKey]*openStream),
		declared:  declarations{make(map[serving.AppID]float64), make(map[int32]float64)},
		instances: make(map[serving.InstanceID]*instance), jobs: make(map[serving.BatchID]*job),
		graphs: graphs, states: newStates(c.States, c.State, c.StatesHeld, c.Trouble),
	}
	p.world.Store(c.Spec)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.loop()
	return p, nil
}

// spec returns the tables in force. Identifiers of older ones stay valid as long as the engine refers to them.
func (p *Plane) spec() *serving.Spec { return p.world.Load() }

// Grow puts a larger spec into force. Requests that are submitted afterwards may name its new entries. It fails when
// the spec is not valid, or does not extend the one in force (serving.Spec.Grows). wiring is that of the new apps'
// stages, by StageID; nil where each has one.
func (p *Plane) Grow(g *engine.Growth, wiring []pipeline.Wiring) error {
	if err := g.Spec.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := g.Spec.CheckGrowth(p.spec()); err != nil {
		return fmt.Errorf("dataplane: %w", err)
	}
	graphs, err := newGraphs(g.Spec, wiring, g.Spec.FreshSince(p.spec()).Apps)
	if err != nil {
		return err
	}
	if p.closed {
		return errors.New("dataplane: the plane is closed")
	}
	p.world.Store(g.Spec)
	p.inbox = append(p.inbox, message{in: engine.NewSpecGrown(g), graphs: graphs})
	p.closeStreams(g.Spec)
	p.signal()
	return nil
}

// Now returns the time since the plane started: the clock of its engine.
func (p *Plane) Now() serving.Time { return serving.Time(time.Since(p.start)) }

// Infer submits a request and waits for its answer. An error is an *Error. When ctx ends first the query is cancelled:
// its waiting tasks are removed, and the results of running ones are ignored.
func (p *Plane) Infer(ctx context.Context, r *Request) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Outcome: serving.Cancelled, Reason: "the client went away", Cause: err}
	}
	type answer struct {
		response *Response
		err      error
		sent     time.Time
	}
	answers := make(chan answer, 1)
	id := p.Submit(r, func(response *Response, err error) { answers <- answer{response, err, time.Now()} })
	select {
	case a := <-answers:
		p.slack.reply.add(time.Since(a.sent))
		return a.response, a.err
	case <-ctx.Done():
		if id != 0 {
			p.Cancel(id)
		}
		a := <-answers
		if e := (*Error)(nil); errors.As(a.err, &e) && e.Outcome == serving.Cancelled &&
			errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.Cause = ctx.Err() // the client's deadline, and not the client
		}
		return a.response, a.err
	}
}

// Submit hands in a request and returns the query's number at once. The request must not be changed afterwards. reply
// is called exactly once, on the owner goroutine or, with Request.Partial, on one of its own, and must not block. When
// the plane is draining or closed, reply is
// called before Submit returns, and the number is 0.
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
		Length: r.Length, MinAccuracy: r.MinAccuracy, Variant: r.Variant, Stream: StreamNumber(r.StreamName()),
		Tenant: r.Tenant,
	}
	p.spec().SetDeadline(&q, r.Timeout)
	if r.Within > 0 {
		if q.Expires = now.Add(r.Within); q.Expires < q.Deadline {
			q.Deadline, q.Own = q.Expires, p.spec().Proposes(r.App)
		}
	}
	q.Slack = p.slackOf(r.App, q.Deadline.Sub(now))
	gone := !r.Current(p.spec())
	if !gone {
		p.noteQuery(r, &q)
	}
	var given *partials
	if r.Partial != nil {
		given = &partials{to: r.Partial, limit: p.c.Output}
		answered := reply
		reply = func(response *Response, err error) {
			// Not on the owner goroutine: an answer may be on its way to a slow client.
			go func() { given.close(); answered(response, err) }()
		}
	}
	if r.Accepted != nil {
		r.Accepted(id)
	}
	p.inbox = append(p.inbox, message{
		in: engine.NewQueryArrived(q), call: &call{request: r, arrived: now, reply: reply, partials: given, gone: gone},
	})
	p.mu.Unlock()
	if r.Queued != nil {
		r.Queued()
	}
	p.signal()
	return id
}

// Cancel ends a query whose client no longer waits. It does nothing when the query has ended.
func (p *Plane) Cancel(id serving.QueryID) {
	p.send(message{in: engine.NewQueryCancelled(id)})
}

func (p *Plane) send(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sendLocked(m)
}

// sendLocked is send for a caller that holds the lock.
func (p *Plane) sendLocked(m message) {
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

// Inspect runs f on the owner goroutine, after the step that takes what was sent before, and returns when it has run.
// f must not keep the engine. When the plane is closed Inspect returns false and does not run f.
func (p *Plane) Inspect(f func(*engine.Engine)) bool {
	ran := make(chan struct{})
	p.send(message{look: func(e *engine.Engine) { f(e); close(ran) }})
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

// Recall hands the engine what was learned of an app in an earlier run.
func (p *Plane) Recall(r engine.Recalled) {
	p.send(message{in: engine.NewIdleRecalled(&r)})
}

// Adopt hands a plan to the engine, which puts it into force if it is valid. The plan must not be changed afterwards.
func (p *Plane) Adopt(pl *plan.Plan) {
	p.send(message{in: engine.NewPlanReady(pl)})
}

// SetPrice sets the price of a machine of a device type from now on, in $/h. It must be finite and at least 0.
func (p *Plane) SetPrice(d serving.DeviceTypeID, price float64) {
	p.send(message{in: engine.NewPriceChanged(d, price)})
}

// Lose reports all instances on a worker lost.
func (p *Plane) Lose(w serving.WorkerID) {
	p.send(message{ask: func(e *engine.Engine) {
		for _, i := range e.Fleet().Live() {
			if i.Worker() == w {
				p.in = append(p.in, engine.NewInstanceLost(i.ID()))
			}
		}
	}})
}

// MachineLeaving reports that the machine of a worker still works and will soon be gone: its work is to move.
func (p *Plane) MachineLeaving(w serving.WorkerID) { p.machine(w, engine.MachineLeaving, 0) }

// MachineMissing reports that no machine can be had for a worker for some time.
func (p *Plane) MachineMissing(w serving.WorkerID, lasts time.Duration) {
	p.machine(w, engine.MachineMissing, lasts)
}

// MachineStays reports that the machine of a worker no longer leaves, or can be had again.
func (p *Plane) MachineStays(w serving.WorkerID) { p.machine(w, engine.MachineStays, 0) }

// MachineCame reports how long the machine of a worker took from being asked for until it was ready.
func (p *Plane) MachineCame(w serving.WorkerID, took time.Duration) {
	p.machine(w, engine.MachineCame, took)
}

// MachineLost reports that the machine of a worker is gone with everything on it. Another one can be had.
func (p *Plane) MachineLost(w serving.WorkerID) {
	p.machine(w, engine.MachineStays, 0)
	p.Lose(w)
}

func (p *Plane) machine(w serving.WorkerID, c engine.MachineChange, d time.Duration) {
	p.send(message{in: engine.NewMachineChanged(w, c, d)})
}

// Drain refuses new queries from now on and returns when every accepted one has ended, or with ctx's error when ctx
// ends first.
func (p *Plane) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	idle := make(chan struct{})
	p.send(message{ask: func(*engine.Engine) { p.drained = append(p.drained, idle) }})
	select {
	case <-idle:
		return nil
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the plane at once: it refuses queries that have not ended, and releases the instances. It returns when
// none of the plane's goroutines runs any more.
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
