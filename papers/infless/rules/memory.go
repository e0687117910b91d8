package rules

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

var errRemembered = errors.New("the record of idle times is cut off, or of another rule")

// recall merges the histograms encoded in b into list, in order, and returns the remaining bytes.
func recall(b []byte, now serving.Time, older time.Duration, list ...*histogram.Sliding) (_ []byte, err error) {
	for _, h := range list {
		if b, err = h.MergeEncoded(b, int64(now), int64(older)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Remember implements KeepAlive.
func (h *HybridHistogram) Remember(b []byte, now serving.Time) []byte {
	b = h.seen.AppendEncoded(b, int64(now))
	n := min(h.n, recentIdle)
	b = binary.AppendUvarint(b, uint64(n))
	for k := h.n - n; k < h.n; k++ {
		b = binary.AppendUvarint(b, uint64(h.last[k%recentIdle]))
	}
	return b
}

// Recall implements KeepAlive.
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
	if size <= 0 || n > recentIdle {
		return nil, errRemembered
	}
	b = b[size:]
	for range n {
		idle, size := binary.Uvarint(b)
		if size <= 0 || idle > 1<<62 {
			return nil, errRemembered
		}
		b = b[size:]
		h.last[h.n%recentIdle] = time.Duration(idle)
		h.n++
	}
	return b, nil
}

// Remember implements KeepAlive.
func (l *LSTH) Remember(b []byte, now serving.Time) []byte {
	return l.short.AppendEncoded(l.long.Remember(b, now), int64(now))
}

// Recall implements KeepAlive.
func (l *LSTH) Recall(b []byte, now serving.Time, older time.Duration) error {
	b, err := l.long.recall(b, now, older)
	if err == nil {
		_, err = recall(b, now, older, l.short)
	}
	return err
}

// Remember implements KeepAlive.
func (c *Cheapest) Remember(b []byte, now serving.Time) []byte {
	for _, h := range c.seen {
		b = h.AppendEncoded(b, int64(now))
	}
	return b
}

// Recall implements KeepAlive.
func (c *Cheapest) Recall(b []byte, now serving.Time, older time.Duration) error {
	_, err := recall(b, now, older, c.seen[:]...)
	return err
}

// Learned implements scale.Recaller: it counts the calls that ended an idle time.
func (o *RateBands) Learned(app serving.AppID) int { return o.app(app).calls }

// Remember implements scale.Recaller. The record begins with the name of the app's rule. An app that was never called
// has none.
func (o *RateBands) Remember(app serving.AppID, now serving.Time) []byte {
	a := o.app(app)
	if !a.called {
		return nil
	}
	b := append([]byte(a.keepAlive.Name()), 0)
	return a.keepAlive.Remember(b, now)
}

// Recall implements scale.Recaller. It refuses the record of another rule.
func (o *RateBands) Recall(app serving.AppID, b []byte, now serving.Time, older time.Duration) error {
	a := o.app(app)
	name, rest, ok := bytes.Cut(b, []byte{0})
	if !ok || string(name) != a.keepAlive.Name() {
		return fmt.Errorf("idle times are of rule %.20q, the system's is %q", name, a.keepAlive.Name())
	}
	if err := a.keepAlive.Recall(rest, now, older); err != nil {
		a.keepAlive = o.fresh()
		return err
	}
	a.called, a.since = true, serving.Never // ask the rule again for the spans of this idle time
	return nil
}
