package monitor

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// RecentWindow is the window of Recent, as RAMSIS §6 takes it for all systems that follow the load at once.
const RecentWindow = 500 * time.Millisecond

// recent holds the arrival times of the last RecentWindow in a ring, which grows to the busiest window seen.
type recent struct {
	ring  []serving.Time // its length is a power of two
	first int
	n     int
}

func (r *recent) add(now serving.Time) {
	r.trim(now)
	if r.n == len(r.ring) {
		ring := make([]serving.Time, max(2*len(r.ring), 64))
		for k := range r.n {
			ring[k] = r.ring[(r.first+k)&(len(r.ring)-1)]
		}
		r.ring, r.first = ring, 0
	}
	r.ring[(r.first+r.n)&(len(r.ring)-1)] = now
	r.n++
}

func (r *recent) trim(now serving.Time) {
	for r.n > 0 && r.ring[r.first] <= now-serving.Time(RecentWindow) {
		r.first = (r.first + 1) & (len(r.ring) - 1)
		r.n--
	}
}

// Recent returns the mean arrival rate of app in queries/s over the RecentWindow before now, with the arrivals at now.
// Early in a run it is over the time passed; at time 0 it is +Inf, so that systems that follow the load begin with the
// policy for the highest.
func (r *View) Recent(now serving.Time, app serving.AppID) float64 {
	if now <= 0 {
		return math.Inf(1)
	}
	x := &r.recent[app]
	x.trim(now)
	return float64(x.n) / min(now, serving.Time(RecentWindow)).Seconds()
}
