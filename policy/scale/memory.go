package scale

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

var errMemory = errors.New("what is to be recalled is cut off, or of another rule")

// recall takes histograms up from b one after the other and returns what follows.
func recall(b []byte, now serving.Time, older time.Duration, list ...*histogram.Sliding) (_ []byte, err error) {
	for _, h := range list {
		if b, err = h.MergeEncoded(b, int64(now), int64(older)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Remember implements Keeper.
func (h *HybridHistogram) Remember(b []byte, now serving.Time) []byte {
	b = h.seen.AppendEncoded(b, int64(now))
	n := min(h.n, keptIdle)
	b = binary.AppendUvarint(b, uint64(n))
	for k := h.n - n; k < h.n; k++ {
		b = binary.AppendUvarint(b, uint64(h.last[k%keptIdle]))
	}
	return b
}

// Recall implements Keeper.
func (h *HybridHistogram) Recall(b []byte, now serving.Time, older time.Duration) error {
	_, err := h.recall(b, now, older)
	return err
}

func (h *HybridHistogram) recall(b []byte, now serving.Time, older time.Duration) ([]byte, error) {
	b, err := recall(b, now, older, h.seen)
	if err != nil {
		return nil, err
	}
	n, size := binary.Uvarint(b)
	if size <= 0 || n > keptIdle {
		return nil, errMemory
	}
	b = b[size:]
	for range n {
		idle, size := binary.Uvarint(b)
		if size <= 0 || idle > 1<<62 {
			return nil, errMemory
		}
		b = b[size:]
		h.last[h.n%keptIdle] = time.Duration(idle)
		h.n++
	}
	return b, nil
}

// Remember implements Keeper.
func (l *LSTH) Remember(b []byte, now serving.Time) []byte {
	return l.short.AppendEncoded(l.long.Remember(b, now), int64(now))
}

// Recall implements Keeper.
func (l *LSTH) Recall(b []byte, now serving.Time, older time.Duration) error {
	b, err := l.long.recall(b, now, older)
	if err == nil {
		_, err = recall(b, now, older, l.short)
	}
	return err
}

// Remember implements Keeper.
func (c *Cheapest) Remember(b []byte, now serving.Time) []byte {
	for _, h := range c.seen {
		b = h.AppendEncoded(b, int64(now))
	}
	return b
}

// Recall implements Keeper.
func (c *Cheapest) Recall(b []byte, now serving.Time, older time.Duration) error {
	_, err := recall(b, now, older, c.seen[:]...)
	return err
}

// Recaller is a Scaler that learns of every app what may outlive a run.
type Recaller interface {
	// Learned counts what was learned of an app in this run; what is remembered is another once it has changed.
	Learned(app serving.AppID) int
	// Remember returns what is known of an app at now; nil for nothing.
	Remember(app serving.AppID, now serving.Time) []byte
	// Recall takes up what was remembered of an app, older ago. With an error what was learned of the app is gone as
	// well.
	Recall(app serving.AppID, b []byte, now serving.Time, older time.Duration) error
}

// Learned implements Recaller: it counts calls.
func (o *RateBands) Learned(app serving.AppID) int { return o.app(app).calls }

// Remember implements Recaller. The name of the app's rule comes first; an app that was never called has nothing.
func (o *RateBands) Remember(app serving.AppID, now serving.Time) []byte {
	a := o.app(app)
	if !a.called {
		return nil
	}
	b := append([]byte(a.keeper.Name()), 0)
	return a.keeper.Remember(b, now)
}

// Recall implements Recaller. It refuses what another rule remembered.
func (o *RateBands) Recall(app serving.AppID, b []byte, now serving.Time, older time.Duration) error {
	a := o.app(app)
	name, rest, ok := bytes.Cut(b, []byte{0})
	if !ok || string(name) != a.keeper.Name() {
		return fmt.Errorf("idle times are of rule %.20q, the system's is %q", name, a.keeper.Name())
	}
	if err := a.keeper.Recall(rest, now, older); err != nil {
		a.keeper = o.fresh()
		return err
	}
	a.called, a.since = true, serving.Never // the spans of this idle time are asked for again
	return nil
}
