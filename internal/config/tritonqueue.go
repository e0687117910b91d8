package config

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// queueOf is what dynamic_batching says of a model's queue; nil where it says nothing.
func queueOf(d *pb.ModelDynamicBatching) *Queue {
	if d == nil {
		return nil
	}
	q := &Queue{Delay: micros(d.MaxQueueDelayMicroseconds)}
	if q.Delay > 0 && len(d.PreferredBatchSize) > 0 {
		for _, n := range d.PreferredBatchSize {
			q.Preferred = append(q.Preferred, int(n))
		}
	}
	levels := min(int(min(d.PriorityLevels, maxLevels)), maxLevels)
	if levels == 0 && d.DefaultQueuePolicy != nil {
		levels = 1
	}
	for k := range levels {
		p := d.DefaultQueuePolicy
		if own := d.PriorityQueuePolicy[uint64(k+1)]; own != nil {
			p = own
		}
		l := QueueLevel{
			Timeout: micros(p.GetDefaultTimeoutMicroseconds()), OwnTimeout: p.GetAllowTimeoutOverride(),
			Limit: int(min(p.GetMaxQueueSize(), 1<<30)),
		}
		if p.GetTimeoutAction() == pb.ModelQueuePolicy_DELAY {
			l.OnTimeout = onTimeoutDelay
		}
		q.Levels = append(q.Levels, l)
	}
	if levels > 0 {
		q.DefaultPriority = max(1, min(int(min(d.DefaultPriorityLevel, maxLevels)), levels))
	}
	if q.Delay == 0 && len(q.Levels) == 0 {
		return nil
	}
	return q
}

func micros(us uint64) Duration {
	return Duration(min(us, math.MaxInt64/uint64(time.Microsecond)) * uint64(time.Microsecond))
}

// waits reports whether the author of a queue says how long queries wait: then the objective gives none up.
func (q *Queue) waits() bool { return q.rules().Ends() }

// places is how many queries may wait in all levels; 0 where some level sets no limit.
func (q *Queue) places() (n int) {
	if q == nil {
		return 0
	}
	for _, l := range q.Levels {
		if l.Limit == 0 {
			return 0
		}
		n += l.Limit
	}
	return n
}

// setQueue gives the app of a model the model's queue.
func (a *App) setQueue(q *Queue) {
	a.Queue = q
	a.keepsQueue(q)
}

// keepsQueue sets what the queue of a stage means for its app: where the author says how long queries wait, no
// objective gives them up.
func (a *App) keepsQueue(q *Queue) {
	if q == nil {
		return
	}
	if q.waits() {
		a.Late = "serve-late"
	}
	if n := q.places(); n > DefaultQueueLimit {
		a.QueueLimit = max(a.QueueLimit, n)
	}
}

// writeQueue writes a queue's rules.
func writeQueue(b *bytes.Buffer, q *Queue, indent string) {
	if q == nil {
		return
	}
	fmt.Fprintf(b, "%squeue:   # as dynamic_batching has it\n", indent)
	if q.Delay > 0 {
		fmt.Fprintf(b, "%s  delay: %v\n", indent, q.Delay)
	}
	if len(q.Preferred) > 0 {
		fmt.Fprintf(b, "%s  preferred: [%s]\n", indent, strings.Trim(strings.ReplaceAll(fmt.Sprint(q.Preferred), " ",
			", "), "[]"))
	}
	if len(q.Levels) == 0 {
		return
	}
	fmt.Fprintf(b, "%s  default_priority: %d\n%s  levels:\n", indent, q.DefaultPriority, indent)
	for _, l := range q.Levels {
		var parts []string
		if l.Timeout > 0 {
			parts = append(parts, fmt.Sprintf("timeout: %v", l.Timeout))
		}
		if l.OnTimeout != "" {
			parts = append(parts, "on_timeout: "+l.OnTimeout)
		}
		if l.OwnTimeout {
			parts = append(parts, "own_timeout: true")
		}
		if l.Limit > 0 {
			parts = append(parts, fmt.Sprintf("limit: %d", l.Limit))
		}
		fmt.Fprintf(b, "%s    - {%s}\n", indent, strings.Join(parts, ", "))
	}
}
