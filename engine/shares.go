package engine

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// sharesMemory and sharesObjectives say over which time shares are balanced: the longer of so long and so many
	// objectives of the app.
	sharesMemory     = 2 * time.Second
	sharesObjectives = 4
)

// shares divide the machine time of every app among tenants by weight while it is short: max-min fair over what they
// ask for and have got since the shortage began, older amounts counting less. A query beyond its tenant's share waits
// behind all that are not, so that an idle machine still takes it. Where time is not short every query is within its
// share, and what was used then is held against nobody. Work is counted in items.
type shares struct {
	*world
	apps []appShares // by app; empty where there are no tenants
}

// appShares is the account of an app.
type appShares struct {
	short    bool // queries wait for more than what runs and one batch
	waits    float64
	queries  float64      // that wait
	at       serving.Time // of the amounts below
	levelled serving.Time // when level was computed
	level    float64      // work for each unit of weight that a share comes to
	tenants  []account    // by serving.Query.Tenant
}

// account is what a tenant has asked for and got of an app, in items.
type account struct {
	waits  float64 // of queries of which nothing has started
	within float64 // those of them within the share
	asked  float64 // since the shortage began, decaying
	got    float64 // started since then, decaying
	full   bool    // memory of level: it gets all that it asks for
}

// share is the account's view of a query.
type share struct {
	items  int32 // 0 when it does not wait, or is not counted
	beyond bool
}

func newShares(w *world) *shares {
	s := &shares{world: w}
	s.grow()
	return s
}

// grow adds the accounts of new apps.
func (s *shares) grow() {
	if len(s.spec.Tenants) == 0 {
		return
	}
	for len(s.apps) < len(s.spec.Apps) {
		s.apps = append(s.apps, appShares{tenants: make([]account, len(s.spec.Tenants)+1), levelled: -1})
	}
}

// weight is that of a tenant by its number in queries. Queries without a tenant are those of one with weight 1.
func (s *shares) weight(tenant int) float64 {
	if tenant == 0 {
		return 1
	}
	return s.spec.Tenants[tenant-1].Weight
}

// counts reports whether there are tenants.
func (s *shares) counts() bool { return len(s.apps) > 0 }

// arrived counts a query and decides whether it is beyond its tenant's share. runs is how many queries of its app run,
// batch how many items the first stage takes at once.
func (s *shares) arrived(x *serving.Query, runs, batch int) share {
	if x.Tenant < 0 || int(x.Tenant) > len(s.spec.Tenants) {
		return share{}
	}
	a := &s.apps[x.App]
	t := &a.tenants[x.Tenant]
	own := share{items: x.Items}
	items := float64(x.Items)
	s.age(x.App)
	t.waits += items
	t.asked += items
	a.waits += items
	a.queries++
	room := a.room(runs, batch)
	switch {
	case !a.short && a.waits > room:
		a.begin()
	case a.short && a.waits <= room/2:
		a.short = false
	}
	if a.short {
		if a.levelled != s.now {
			s.fill(a, room)
		}
		mine := a.level * s.weight(int(x.Tenant))
		own.beyond = t.asked > mine && t.got+t.within+items > mine
	}
	if !own.beyond {
		t.within += items
	}
	return own
}

// room is the work of an app that may wait before its machine time counts as short: as much as runs, and a batch.
func (a *appShares) room(runs, batch int) float64 {
	return float64(max(runs, 0))*a.waits/max(a.queries, 1) + float64(batch)
}

// begin starts a shortage: only what waits has been asked for.
func (a *appShares) begin() {
	a.short, a.levelled = true, -1
	for k := range a.tenants {
		t := &a.tenants[k]
		t.asked, t.got = t.waits, 0
	}
}

// age lets older amounts count less.
func (s *shares) age(app serving.AppID) {
	a := &s.apps[app]
	if s.now == a.at {
		return
	}
	memory := max(sharesMemory, sharesObjectives*s.spec.Apps[app].SLO.Latency)
	keep := math.Exp(-s.now.Sub(a.at).Seconds() / memory.Seconds())
	a.at = s.now
	for k := range a.tenants {
		a.tenants[k].asked *= keep
		a.tenants[k].got *= keep
	}
}

// fill computes the level: who asks for less than its weight's worth gets all of it, and the others share what is left
// by weight (water filling). What there is to share is what was started, and what may wait.
func (s *shares) fill(a *appShares, room float64) {
	a.levelled = s.now
	left, weights := room, 0.0
	for k := range a.tenants {
		t := &a.tenants[k]
		left += t.got
		if t.full = t.asked <= 0; !t.full {
			weights += s.weight(k)
		}
	}
	for again := true; again && weights > 0; {
		again = false
		a.level = left / weights
		for k := range a.tenants {
			if t := &a.tenants[k]; !t.full && t.asked <= a.level*s.weight(k) {
				t.full, again = true, true
				left -= t.asked
				weights -= s.weight(k)
			}
		}
	}
	if weights <= 0 {
		a.level = math.Inf(1)
	}
}

// started counts the work of a query once the first of its tasks starts.
func (s *shares) started(rec *record) {
	items := float64(rec.share.items)
	if items == 0 {
		return // not the first task of its query
	}
	s.leave(&rec.query, &rec.share)
	s.apps[rec.query.App].tenants[rec.query.Tenant].got += items
}

// ended forgets a query that waited and is not served.
func (s *shares) ended(rec *record) { s.leave(&rec.query, &rec.share) }

// notTaken forgets a query that was refused after all.
func (s *shares) notTaken(x *serving.Query, own share) { s.leave(x, &own) }

// leave takes the work of a query that no longer waits off the accounts.
func (s *shares) leave(x *serving.Query, own *share) {
	if own.items == 0 {
		return
	}
	a := &s.apps[x.App]
	t := &a.tenants[x.Tenant]
	items := float64(own.items)
	t.waits -= items
	a.waits -= items
	a.queries--
	if !own.beyond {
		t.within -= items
	}
	own.items = 0
}
