package server

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// sequenceIdle is how long a sequence may be silent where the model does not say, as in Triton.
	sequenceIdle = time.Second
	// maxSequences bounds the sequences of one model that are open at a time.
	maxSequences = 100_000
)

// sequences are the open sequences of models that are told of them. A sequence is open from a request that starts it to
// one that ends it, or until it was silent for too long. It is safe for concurrent use.
type sequences struct {
	mu    sync.RWMutex
	byApp map[serving.AppID]*appSequences
	now   func() time.Time
}

type appSequences struct {
	idle   time.Duration
	most   int
	number bool // the model needs a number as the sequence's name
	single bool // the model batches: a request has one item, since batches are made of sequences

	mu    sync.Mutex
	open  map[string]*sequence // by name
	swept time.Time
}

type sequence struct {
	last time.Time // of its requests
	// under has a function for each query under way, in the order of arrival, that cancels it.
	under []*context.CancelFunc
}

// newSequences finds the apps whose model is told of sequences.
func newSequences(tables *config.Resolved) *sequences {
	s := &sequences{byApp: make(map[serving.AppID]*appSequences), now: time.Now}
	for v := range tables.Variants {
		b := &tables.Variants[v]
		if b.Described == nil || b.Described.Sequence == nil || s.byApp[b.App] != nil {
			continue
		}
		s.byApp[b.App] = sequencesOf(b.Described)
	}
	return s
}

// add adds an app whose model is told of sequences.
func (s *sequences) add(a serving.AppID, to *appSequences) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byApp[a] = to
}

// remove removes an app that is gone.
func (s *sequences) remove(a serving.AppID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byApp, a)
}

// sequencesOf says what sequences of a model may be. Triton's max_candidate_sequences is how many are batched at a
// time: here as many as wait are, up to the model's batch, and so it bounds nothing.
func sequencesOf(m *repository.Model) *appSequences {
	c := m.Config.SequenceBatching
	a := &appSequences{idle: sequenceIdle, most: maxSequences, open: make(map[string]*sequence)}
	a.single = m.Config.GetMaxBatchSize() > 0
	if us := c.GetMaxSequenceIdleMicroseconds(); us > 0 {
		a.idle = time.Duration(min(us, uint64(24*time.Hour/time.Microsecond))) * time.Microsecond
	}
	for _, x := range m.Sequence.Controls {
		if x.Kind == pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID && x.DType != tensor.Bytes {
			a.number = true
		}
	}
	return a
}

// admit opens, continues or ends the sequence of a request. It fails, in Triton's words, for a request without a
// sequence, for one whose sequence is not open, and for one of several items where the model batches. Otherwise the
// query runs within the context that is returned, and ended is called with what became of it.
func (s *sequences) admit(ctx context.Context, r *dataplane.Request, spec *serving.Spec) (
	within context.Context, ended func(error), err error) {
	s.mu.RLock()
	a := s.byApp[r.App]
	s.mu.RUnlock()
	if a == nil {
		return ctx, func(error) {}, nil
	}
	app := spec.Apps[r.App].Name
	if err := a.fits(r, app); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q, err := a.enter(r, app, s.now())
	if err != nil {
		return nil, nil, err
	}
	within, ended = a.follow(ctx, r.StreamName(), q)
	return within, ended, nil
}

// fits returns an error for a request that is of no sequence which the model can have.
func (a *appSequences) fits(r *dataplane.Request, app string) error {
	if r.Stream == "" {
		return oip.Errorf(oip.Invalid, "", "inference request to model '%s' must specify a non-zero or non-empty "+
			"correlation ID", app)
	}
	if _, err := strconv.ParseUint(r.Stream, 10, 64); a.number && err != nil {
		return oip.Errorf(oip.Invalid, "", "sequence_id: is %.64q, and model '%s' needs a number", r.Stream, app)
	}
	if a.single && r.Items > 1 {
		return oip.Errorf(oip.Invalid, "", "inference request to model '%s' must specify batch-size 1 due to "+
			"requirements of sequence batcher", app)
	}
	return nil
}

// enter returns the sequence of a request, which it opens, continues or ends. The caller holds a.mu.
func (a *appSequences) enter(r *dataplane.Request, app string, now time.Time) (*sequence, error) {
	name := r.StreamName()
	q, open := a.open[name]
	if open && now.Sub(q.last) > a.idle {
		delete(a.open, name)
		open = false
	}
	switch {
	case !open && !r.Begins:
		return nil, oip.Errorf(oip.Invalid, "", "inference request for sequence %s to model '%s' must specify the "+
			"START flag on the first request of the sequence", r.Stream, app)
	case !open && !r.Ends:
		a.sweep(now)
		if len(a.open) >= a.most {
			return nil, oip.Errorf(oip.Unavailable, "", "model '%s' has %d open sequences, which is the most: end some",
				app, len(a.open))
		}
	}
	if r.Begins {
		q = &sequence{}
	}
	if q.last = now; r.Ends {
		delete(a.open, name)
	} else {
		a.open[name] = q
	}
	return q, nil
}

// follow adds a query to a sequence. If its client cancels it, the model misses a request: as in Triton, the sequence
// ends, and the queries behind it are cancelled. The caller holds a.mu.
func (a *appSequences) follow(ctx context.Context, name string, q *sequence) (context.Context, func(error)) {
	within, cancel := context.WithCancel(ctx)
	mine := &cancel
	q.under = append(q.under, mine)
	return within, func(err error) {
		defer cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		at := slices.Index(q.under, mine)
		if at < 0 {
			return // cancelled with one before it
		}
		if err != nil && ctx.Err() != nil {
			for _, behind := range q.under[at+1:] {
				(*behind)()
			}
			q.under = q.under[:at+1]
			if a.open[name] == q {
				delete(a.open, name)
			}
		}
		q.under = slices.Delete(q.under, at, at+1)
	}
}

// sweep forgets sequences that were silent for too long, at most once an idle time.
func (a *appSequences) sweep(now time.Time) {
	if now.Sub(a.swept) < a.idle && len(a.open) < a.most {
		return
	}
	a.swept = now
	for name, q := range a.open {
		if now.Sub(q.last) > a.idle {
			delete(a.open, name)
		}
	}
}
