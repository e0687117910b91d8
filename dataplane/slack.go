package dataplane

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Bounds of the learned slack.
const (
	leastSlack = time.Millisecond // a machine that was quiet so far may be busy in a moment
	// firstShare is the part of a query's time that the slack takes for its first firstSamples queries: one in so many.
	firstShare   = 20
	firstSamples = 200
	// slackShare is the part of a query's time that the slack may take at most: one in so many.
	slackShare = 4
	// slackSamples is the number of samples from which a delay is known. After as many times slackMemory they count
	// half, so that a delay that has changed is learned anew.
	slackSamples = 20
	slackMemory  = 2048
)

// delay is one kind of delay that profiles do not contain: its distribution in buckets of a power of two of
// nanoseconds. Any goroutine may add to it.
type delay struct {
	buckets [40]atomic.Uint32
	n       atomic.Uint32
}

func (d *delay) add(x time.Duration) {
	at := min(bits.Len64(uint64(max(x, 0))), len(d.buckets)-1)
	d.buckets[at].Add(1)
	if n := d.n.Add(1); n%slackMemory == 0 {
		for k := range d.buckets {
			b := d.buckets[k].Load()
			d.buckets[k].Store(b / 2) // a sample that is added meanwhile may be lost
		}
		d.n.Store(n / 2)
	}
}

// tail is the 99th percentile, rounded up to a power of two; 0 while too little is known.
func (d *delay) tail() time.Duration {
	if d.n.Load() < slackSamples {
		return 0
	}
	total := uint32(0)
	for k := range d.buckets {
		total += d.buckets[k].Load()
	}
	below := uint32(0)
	for k := range d.buckets {
		if below += d.buckets[k].Load(); uint64(below)*100 >= uint64(total)*99 {
			return time.Duration(1) << k
		}
	}
	return 0
}

// slack is what a query loses beside waiting and running: the lateness of timers, the hand-over of batches to and from
// the goroutines that run them, and the way of the answer to the caller's goroutine.
type slack struct {
	timer, start, end, reply delay

	known time.Duration // total, as of the last time it was asked for
	asked int
}

// slackAsked is how many queries use the same total: to sum up takes longer than all else about a query's arrival.
const slackAsked = 64

// total is the slack to keep free: the sum of the delays' 99th percentiles.
func (s *slack) total() time.Duration {
	return max(s.timer.tail()+s.start.tail()+s.end.tail()+s.reply.tail(), leastSlack)
}

// slackOf is the slack of a query of an app that may take timeout; see serving.Query.Slack. The caller holds the lock.
func (p *Plane) slackOf(app serving.AppID, timeout time.Duration) time.Duration {
	switch {
	case p.c.Slack == NoSlack:
		return 0
	case app < 0 || int(app) >= len(p.spec().Apps) || p.spec().Apps[app].Slack > 0 || p.c.Slack == GivenSlack:
		return 1
	}
	if p.slack.asked%slackAsked == 0 {
		p.slack.known = p.slack.total()
	}
	p.slack.asked++
	known := p.slack.known
	if p.slack.asked <= firstSamples {
		known = max(known, timeout/firstShare)
	}
	return max(1, min(known, timeout/slackShare))
}

// SlackMode says where the time comes from that is kept free before the latest start of a query.
type SlackMode uint8

// Modes of slack.
const (
	NoSlack      SlackMode = iota // none, for clocks that are never late
	GivenSlack                    // that of the spec's apps alone
	LearnedSlack                  // that of the spec's apps; of apps that have none, what the plane measures
)
