package cells

import (
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// observed is a lease as this process has seen it. Times are those of this process's monotonic clock, at which it saw
// the lease change; what other machines' clocks wrote into the lease is not read.
type observed struct {
	lease *coordinationv1.Lease // the newest version; nil where there is none
	since time.Time             // when this version was first seen
	// probing is since when direct reads have succeeded without a failure between them and have all shown this version;
	// zero when the latest did not. A watch alone does not tell a silent holder from a silent API server.
	probing time.Time
	probeAt time.Time // when to read again
}

// see takes a version of the lease; nil says that there is none. Versions that are older than what is known are
// ignored: a watch may lag behind this process's own writes.
func (o *observed) see(l *coordinationv1.Lease, now time.Time) {
	if l != nil && o.lease != nil && o.lease.UID == l.UID && !newer(l.ResourceVersion, o.lease.ResourceVersion) {
		return
	}
	o.lease, o.since, o.probing = l, now, time.Time{}
}

// probed takes the result of a direct read.
func (o *observed) probed(l *coordinationv1.Lease, ok bool, now time.Time) {
	if !ok {
		o.probing = time.Time{}
		return
	}
	o.see(l, now)
	if o.probing.IsZero() {
		o.probing = now
	}
}

// newer compares two resource versions, which are numbers that grow.
func newer(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return a != b
	}
	y, err := strconv.ParseUint(b, 10, 64)
	return err != nil || x > y
}

// duration is how long the lease's holder may be silent.
func (o *observed) duration(otherwise time.Duration) time.Duration {
	if o.lease == nil || o.lease.Spec.LeaseDurationSeconds == nil {
		return otherwise
	}
	return time.Duration(*o.lease.Spec.LeaseDurationSeconds) * time.Second
}

// lapsed reports whether the holder has been silent for too long while the API server could be reached: it has had the
// chance to renew twice.
func (o *observed) lapsed(now time.Time, duration, renew time.Duration) bool {
	return now.Sub(o.since) >= o.duration(duration) && !o.probing.IsZero() && now.Sub(o.probing) >= 2*renew
}

// suspect reports whether a lease is to be read directly: its holder has not renewed it when it should have.
func (o *observed) suspect(now time.Time, renew time.Duration) bool {
	return now.Sub(o.since) >= renew+renew/2
}
