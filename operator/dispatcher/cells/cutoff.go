package cells

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// judge finds out whether this replica alone cannot reach the API server: then others take its cells, and it must not
// serve them as well. It asks the others. Two of their answers with a failed attempt of its own between them decide:
// when the server comes back, some reach it a moment before others do.
func (k *Elector) judge(ctx context.Context, live map[string]Holder, now time.Time) {
	if k.CutOff == nil || k.failing.IsZero() || k.cut || len(k.holding()) == 0 ||
		now.Sub(k.failing) < k.Renew || now.Sub(k.asked) < k.Renew {
		return
	}
	k.asked = now
	others := k.others()
	if len(others) == 0 {
		return
	}
	k.ops.Go(func() {
		limit, done := context.WithTimeout(ctx, k.Renew)
		defer done()
		reach := k.CutOff(limit, others)
		k.results <- func(time.Time) {
			switch {
			case k.failing.IsZero():
			case reach && k.accused:
				k.cutOff()
			default:
				k.accused = reach
			}
		}
	})
}

// others are the replicas that were ever seen, but for this one.
func (k *Elector) others() []Holder {
	out := make(map[string]Holder)
	add := func(l *coordinationv1.Lease) {
		if h := holderOf(l); h.Identity != "" && h.Identity != k.Me.Identity && h.HTTP != "" {
			out[h.Identity] = h
		}
	}
	for _, m := range k.members {
		add(m.lease)
	}
	for _, c := range k.cells {
		add(c.lease)
	}
	return slices.Collect(maps.Values(out))
}

// cutOff stops serving until the API server answers.
func (k *Elector) cutOff() {
	k.cut = true
	k.Log.Error("other replicas reach the API server and this one does not: it stops serving its cells, which others " +
		"take over")
	for n, c := range k.cells {
		if c.serving {
			c.serving = false
			k.Server.Release(n, false)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
