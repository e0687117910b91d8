package cells

import (
	"context"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// step does what the present view asks for. Writes run beside it, one at a time for each lease.
func (k *Elector) step(ctx context.Context, now time.Time) {
	if !k.take(now) {
		return
	}
	live := k.live(now)
	holders, dealt := make(map[int]string, len(k.cells)), make(map[int]string, len(k.cells))
	leaving := k.ending()
	for n := range k.cells {
		if !k.exists(n) {
			continue
		}
		holders[n] = k.effective(n, now)
		if dealt[n] = holders[n]; leaving[holders[n]] {
			dealt[n] = ""
		}
	}
	target := Assign(dealt, slices.Sorted(maps.Keys(live)))
	for _, n := range slices.Sorted(maps.Keys(k.cells)) {
		c := k.cells[n]
		switch {
		case !k.exists(n):
			k.drop(ctx, n, c)
		case holderOf(c.lease).Identity == k.Me.Identity:
			k.keep(ctx, n, c, target[n], live, now)
		case holders[n] != "" && k.promised(c) && k.leaving:
			k.withdraw(ctx, n, c)
		case holders[n] != "" && c.lease.Annotations[AnnotationNext] == k.Me.Identity && !k.leaving:
			k.prepare(ctx, n, c)
		case holders[n] == "" && target[n] == k.Me.Identity && !c.busy && !k.cut:
			k.acquire(ctx, n, c)
		default:
			k.stop(n, c)
			k.probe(ctx, n, c, now)
		}
	}
	k.beMember(ctx, now)
	k.judge(ctx, live, now)
	k.publish()
}

func (k *Elector) exists(n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.owners[n]
	return ok
}

// effective is who holds a cell; "" where nobody does, or its holder has lapsed.
func (k *Elector) effective(n int, now time.Time) string {
	c := k.cells[n]
	h := holderOf(c.lease).Identity
	if h != k.Me.Identity && c.lapsed(now, k.Duration, k.Renew) {
		return ""
	}
	return h
}

// keep renews a cell that this replica holds, and hands it over to who is to have it.
func (k *Elector) keep(ctx context.Context, n int, c *held, target string, live map[string]Holder, now time.Time) {
	if !c.serving && !k.cut {
		c.serving, c.givenTo = true, ""
		k.Server.Prepare(n)
	}
	if c.busy {
		return
	}
	next := ""
	if _, ok := live[target]; ok && target != k.Me.Identity {
		next = target
	}
	had := c.lease.Annotations[AnnotationNext]
	if next != "" && had == next && c.lease.Annotations[AnnotationPrepared] == next {
		l := c.lease.DeepCopy()
		give(l, live[next], k.Duration, k.Wall())
		c.givenTo = next // a watch may tell of it before the write returns
		k.write(ctx, n, c, l, nil)
		return
	}
	if next == had && now.Before(c.renewAt) {
		return
	}
	changed := map[string]string{AnnotationNext: next, AnnotationHTTP: k.Me.HTTP, AnnotationGRPC: k.Me.GRPC,
		AnnotationKey: k.Me.Key}
	if next != had {
		changed[AnnotationPrepared] = ""
	}
	c.renewAt = now.Add(k.Renew)
	k.write(ctx, n, c, renewed(c.lease, changed, k.Wall()), nil)
}

// prepare gets ready for a cell that its holder wants to hand over, and tells it.
func (k *Elector) prepare(ctx context.Context, n int, c *held) {
	if !c.serving {
		c.serving, c.givenTo = true, ""
		k.Server.Prepare(n)
	}
	if c.busy || c.lease.Annotations[AnnotationPrepared] == k.Me.Identity || !k.Server.Prepared(n) {
		return
	}
	l := c.lease.DeepCopy()
	l.Annotations[AnnotationPrepared] = k.Me.Identity
	k.write(ctx, n, c, l, nil)
}

// promised reports whether this replica has said that it is ready to take a cell: its holder may hand it over at any
// moment, and may have done so already.
func (k *Elector) promised(c *held) bool {
	return c.lease != nil && holderOf(c.lease).Identity != k.Me.Identity &&
		c.lease.Annotations[AnnotationPrepared] == k.Me.Identity
}

// withdraw takes that back, because this replica ends. If the cell was handed over meanwhile, the write fails, and the
// cell is handed on.
func (k *Elector) withdraw(ctx context.Context, n int, c *held) {
	if c.busy {
		return
	}
	l := c.lease.DeepCopy()
	delete(l.Annotations, AnnotationNext)
	delete(l.Annotations, AnnotationPrepared)
	k.write(ctx, n, c, l, nil)
}

// acquire takes a cell that nobody holds.
func (k *Elector) acquire(ctx context.Context, n int, c *held) {
	if c.lease == nil {
		l := newLease(k.Namespace, LeaseName(k.Fleet, n), k.Fleet, k.Me, k.Duration, k.Wall())
		l.Labels[v1alpha1.LabelCell] = itoa(n)
		k.mu.Lock()
		if owner := k.owners[n]; owner.UID != "" {
			l.OwnerReferences = []metav1.OwnerReference{owner}
		}
		k.mu.Unlock()
		k.operate(ctx, &c.busy, func(ctx context.Context) (*coordinationv1.Lease, error) {
			return l, k.Client.Create(ctx, l)
		}, func(l *coordinationv1.Lease, err error, now time.Time) { k.acquired(n, c, l, err, now) })
		return
	}
	silent := holderOf(c.lease).Identity
	if silent != "" {
		k.Log.Warn("the holder of a cell is silent: taking it over", "cell", n, "holder", silent)
	}
	l := c.lease.DeepCopy()
	give(l, k.Me, k.Duration, k.Wall())
	k.operate(ctx, &c.busy, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return l, k.Client.Update(ctx, l)
	}, func(l *coordinationv1.Lease, err error, now time.Time) { k.acquired(n, c, l, err, now) })
}

func (k *Elector) acquired(n int, c *held, l *coordinationv1.Lease, err error, now time.Time) {
	if err != nil {
		c.probeAt = time.Time{} // somebody else was first, or the API server is gone: read it
		c.probing = time.Time{}
		k.Log.Info("a cell was not taken", "cell", n, "error", err)
		return
	}
	c.see(l, now)
	c.renewAt = now.Add(k.Renew)
	k.Log.Info("took a cell", "cell", n)
}

// stop ends to serve a cell that another replica holds.
func (k *Elector) stop(n int, c *held) {
	if !c.serving {
		return
	}
	c.serving = false
	holder := holderOf(c.lease).Identity
	given := c.givenTo != "" && c.givenTo == holder
	if given {
		k.Log.Info("a cell was handed over", "cell", n, "to", holder)
	} else {
		k.Log.Warn("a cell is not this replica's any more", "cell", n, "holder", holder)
	}
	k.Server.Release(n, given)
	c.givenTo = ""
}

// drop forgets a cell that the fleet does not have any more. Its holder deletes its lease.
func (k *Elector) drop(ctx context.Context, n int, c *held) {
	mine := holderOf(c.lease).Identity == k.Me.Identity
	if c.serving {
		c.serving = false
		k.Server.Release(n, true)
	}
	switch {
	case c.busy:
	case mine:
		l := c.lease
		k.operate(ctx, &c.busy, func(ctx context.Context) (*coordinationv1.Lease, error) {
			return nil, client.IgnoreNotFound(k.Client.Delete(ctx, l))
		}, func(_ *coordinationv1.Lease, err error, now time.Time) {
			if err == nil {
				c.see(nil, now)
			}
		})
	default:
		delete(k.cells, n)
	}
}

// probe reads the lease of a silent holder.
func (k *Elector) probe(ctx context.Context, n int, c *held, now time.Time) {
	if c.busy || c.lease == nil || !c.suspect(now, k.Renew) || now.Before(c.probeAt) {
		return
	}
	c.probeAt = now.Add(k.Renew / 2)
	k.operate(ctx, &c.busy, func(ctx context.Context) (*coordinationv1.Lease, error) { return k.read(ctx, n) },
		func(l *coordinationv1.Lease, err error, now time.Time) { c.probed(l, err == nil, now) })
}

// read returns a cell's lease; nil where there is none.
func (k *Elector) read(ctx context.Context, n int) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: LeaseName(k.Fleet, n)}, l)
	if errors.IsNotFound(err) {
		return nil, nil
	}
	return l, err
}

// write updates a cell's lease from the version that was seen. After a conflict it reads what is there.
func (k *Elector) write(ctx context.Context, n int, c *held, l *coordinationv1.Lease, then func(error)) {
	k.operate(ctx, &c.busy, func(ctx context.Context) (*coordinationv1.Lease, error) {
		err := k.Client.Update(ctx, l)
		if errors.IsConflict(err) || errors.IsNotFound(err) {
			return k.read(ctx, n)
		}
		return l, err
	}, func(l *coordinationv1.Lease, err error, now time.Time) {
		if err == nil {
			c.see(l, now)
		} else {
			k.Log.Debug("a lease was not written", "cell", n, "error", err)
		}
		if then != nil {
			then(err)
		}
	})
}

// beMember renews the replica's own lease: often while it holds no cell, whose lease shows that it lives.
func (k *Elector) beMember(ctx context.Context, now time.Time) {
	m := &k.own
	if m.busy || now.Before(m.renewAt) {
		return
	}
	m.renewAt = now.Add(k.Renew)
	if len(k.holding()) > 0 {
		m.renewAt = now.Add(10 * k.Renew)
	}
	leaving := ""
	if k.leaving {
		leaving = "true"
	}
	name := memberName(k.Fleet, k.Me.Identity)
	k.operate(ctx, &m.busy, func(ctx context.Context) (*coordinationv1.Lease, error) {
		if m.lease == nil {
			l := newLease(k.Namespace, name, k.Fleet, k.Me, k.Duration, k.Wall())
			if k.Owner != nil {
				l.OwnerReferences = []metav1.OwnerReference{*k.Owner}
			}
			return l, k.Client.Create(ctx, l)
		}
		l := renewed(m.lease, map[string]string{AnnotationLeaving: leaving}, k.Wall())
		err := k.Client.Update(ctx, l)
		if errors.IsConflict(err) || errors.IsNotFound(err) {
			l = nil // made anew the next time
		}
		return l, client.IgnoreNotFound(err)
	}, func(l *coordinationv1.Lease, err error, now time.Time) {
		m.lease = l
		if err != nil {
			m.renewAt = now.Add(k.Renew / 2)
		}
	})
}

// operate runs a read or a write beside the elector's loop, and hands its result to the loop.
func (k *Elector) operate(ctx context.Context, busy *bool, do func(context.Context) (*coordinationv1.Lease, error),
	then func(*coordinationv1.Lease, error, time.Time)) {
	*busy = true
	k.ops.Go(func() {
		limit, done := context.WithTimeout(ctx, k.Renew)
		defer done()
		l, err := do(limit)
		answered := time.Now()
		k.results <- func(now time.Time) {
			*busy = false
			k.heard(err, answered)
			then(l, err, now)
		}
	})
}

// heard notes whether the API server answers. Errors that it gives are answers, too.
func (k *Elector) heard(err error, at time.Time) {
	if err != nil && errors.ReasonForError(err) == metav1.StatusReasonUnknown {
		if k.failing.IsZero() {
			k.failing = at
			k.Log.Warn("the API server cannot be reached: what is held goes on", "error", err)
		}
		return
	}
	if !k.failing.IsZero() {
		k.Log.Info("the API server answers again", "after", at.Sub(k.failing).Round(time.Millisecond))
	}
	k.failing, k.accused, k.cut = time.Time{}, false, false
	k.mu.Lock()
	k.reached = at
	k.mu.Unlock()
}

// publish tells who holds what, when that has changed.
func (k *Elector) publish() {
	now := make(map[int]Holder, len(k.cells))
	held := k.holding()
	if k.cut {
		held = nil
	}
	for n, c := range k.cells {
		if !k.exists(n) {
			continue
		}
		now[n] = holderOf(c.lease)
		if k.cut && now[n].Identity == k.Me.Identity {
			now[n] = Holder{} // others have it
		}
	}
	k.mu.Lock()
	k.held, k.apart = held, k.cut
	k.mu.Unlock()
	if k.toldOnce && maps.Equal(now, k.told) {
		return
	}
	k.told, k.toldOnce = now, true
	k.Changed(maps.Clone(now))
}
