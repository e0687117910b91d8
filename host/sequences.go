package host

import (
	"strconv"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/models/repository"
	"github.com/sluice-serving/sluice/models/repository/pb"
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
	byApp map[serving.AppID]*appSequences // fixed
	now   func() time.Time
}

type appSequences struct {
	idle   time.Duration
	most   int
	number bool // the model needs a number as the sequence's name

	mu    sync.Mutex
	open  map[string]time.Time // by name: the last request
	swept time.Time
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

func sequencesOf(m *repository.Model) *appSequences {
	c := m.Config.SequenceBatching
	a := &appSequences{idle: sequenceIdle, most: maxSequences, open: make(map[string]time.Time)}
	if us := c.GetMaxSequenceIdleMicroseconds(); us > 0 {
		a.idle = time.Duration(min(us, uint64(24*time.Hour/time.Microsecond))) * time.Microsecond
	}
	if n := c.GetOldest().GetMaxCandidateSequences(); n > 0 {
		a.most = min(int(n), maxSequences)
	}
	for _, x := range m.Sequence.Controls {
		if x.Kind == pb.ModelSequenceBatching_Control_CONTROL_SEQUENCE_CORRID && x.DType != tensor.Bytes {
			a.number = true
		}
	}
	return a
}

// admit opens, continues or ends the sequence of a request. It fails, in Triton's words, for a request without a
// sequence and for one whose sequence is not open.
func (s *sequences) admit(r *dataplane.Request, spec *serving.Spec) error {
	a := s.byApp[r.App]
	if a == nil {
		return nil
	}
	app := spec.Apps[r.App].Name
	if r.Stream == "" {
		return oip.Errorf(oip.Invalid, "", "inference request to model '%s' must specify a non-zero or non-empty "+
			"correlation ID", app)
	}
	if _, err := strconv.ParseUint(r.Stream, 10, 64); a.number && err != nil {
		return oip.Errorf(oip.Invalid, "", "sequence_id: is %.64q, and model '%s' needs a number", r.Stream, app)
	}
	now, name := s.now(), r.StreamName()
	a.mu.Lock()
	defer a.mu.Unlock()
	last, open := a.open[name]
	if open && now.Sub(last) > a.idle {
		delete(a.open, name)
		open = false
	}
	switch {
	case !open && !r.Begins:
		return oip.Errorf(oip.Invalid, "", "inference request for sequence %s to model '%s' must specify the START "+
			"flag on the first request of the sequence", r.Stream, app)
	case r.Ends:
		delete(a.open, name)
		return nil
	case !open:
		a.sweep(now)
		if len(a.open) >= a.most {
			return oip.Errorf(oip.Unavailable, "", "model '%s' has %d open sequences, which is the most: end some", app,
				len(a.open))
		}
	}
	a.open[name] = now
	return nil
}

// sweep forgets sequences that were silent for too long, at most once an idle time.
func (a *appSequences) sweep(now time.Time) {
	if now.Sub(a.swept) < a.idle && len(a.open) < a.most {
		return
	}
	a.swept = now
	for name, last := range a.open {
		if now.Sub(last) > a.idle {
			delete(a.open, name)
		}
	}
}
