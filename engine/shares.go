package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// sharesMemory and sharesObjectives say over which time shares are balanced: the longer of so long and so many
	// objectives of the app.
	sharesMemory     = 2 * time.Second
	sharesObjectives = 4

	// forgotten is how few items, of those that decay, say nothing any more about the next one.
	forgotten = 1e-9
)

// shares divide the machine time of every app among tenants by weight while it is short: max-min fair over what they
// ask for and have got since the shortage began, older amounts counting less. A query beyond its tenant's share waits
// behind all that are not, so that an idle machine still takes it. What is within the shares takes all of the time, and
// waits for long: queries of tenants that ask for less than their share go before those of tenants that ask for more.
// Where time is not short every query is within its share, and what was used then is held against nobody.
//
// A query that waits is estimated at what its tenant's items took before. Once it runs it is charged the expected time
// of its batches, by its part of their items. Expected time is charged rather than measured time, because a machine
// that stalls is not the tenant's doing; what tenants used is counted apart, as measured.
type shares struct {
	*world
	apps []appShares // by app; empty where there are no tenants
}

// appShares is the account of an app.
type appShares struct {
	short    bool          // queries wait for more than what runs and one batch
	begun    int32         // shortages so far
	waits    time.Duration // of machine time
	queries  int           // that wait
	at       serving.Time  // of the amounts below
	levelled serving.Time  // when level was computed
	level    float64       // seconds for each unit of weight that a share comes to
	modest   bool          // a tenant asks for less than that
	tenants  []account     // by serving.Query.Tenant
}

// account is what a tenant has asked for and got of an app, in machine time.
type account struct {
	waits  time.Duration // estimated, of queries of which nothing has started
	within time.Duration // of those of them within the share
	asked  float64       // seconds since the shortage began, decaying
	got    float64       // seconds started since then, decaying
	full   bool          // memory of level: it gets all that it asks for

	// What served queries took, in seconds, and their items; both decay. Their ratio estimates later queries.
	spent, items float64

	used time.Duration // measured, of batches that have ended, in all
}

// share is the account's view of a query.
type share struct {
	estimate time.Duration // of its machine time; 0 where it is not counted
	ahead    time.Duration // the part of the estimate that counts as got and has not been charged yet
	charged  time.Duration
	begun    int32 // the shortage in which it started
	waits    bool
	beyond   bool
	asking   bool // the tenant asks for more than its share, and another for less
}

func newShares(w *world) *shares {
	s := &shares{world: w}
	s.grow(w.spec.FreshSince(&serving.Spec{}).Apps)
	return s
}

// grow adds the accounts of fresh apps.
func (s *shares) grow(fresh []serving.AppID) {
	if len(s.spec.Tenants) == 0 {
		return
	}
	s.apps = serving.Renew(s.apps, fresh, func(serving.AppID) appShares {
		return appShares{tenants: make([]account, len(s.spec.Tenants)+1), levelled: -1}
	})
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
// batch how many items the first stage takes at once, and least what an item is believed to take there.
func (s *shares) arrived(x *serving.Query, runs, batch int, least time.Duration) share {
	if x.Tenant < 0 || int(x.Tenant) > len(s.spec.Tenants) {
		return share{}
	}
	a := &s.apps[x.App]
	t := &a.tenants[x.Tenant]
	s.age(x.App)
	each := a.perItem(least)
	own := share{estimate: time.Duration(float64(x.Items) * t.perItem(each) * 1e9), waits: true}
	own.estimate = max(own.estimate, 1)
	t.waits += own.estimate
	t.asked += own.estimate.Seconds()
	a.waits += own.estimate
	a.queries++
	room := a.room(runs, batch, each)
	switch {
	case !a.short && a.waits.Seconds() > room:
		a.begin()
	case a.short && a.waits.Seconds() <= room/2:
		a.short = false
	}
	if a.short {
		if a.levelled != s.now {
			s.fill(a, room)
		}
		mine := a.level * s.weight(int(x.Tenant))
		own.asking = !t.full && a.modest
		own.beyond = t.asked > mine && t.got+(t.within+own.estimate).Seconds() > mine
	}
	if !own.beyond {
		t.within += own.estimate
	}
	return own
}

// perItem returns what an item of the app took of late, in seconds; the believed least before anything is known.
func (a *appShares) perItem(least time.Duration) float64 {
	spent, items := 0.0, 0.0
	for k := range a.tenants {
		spent += a.tenants[k].spent
		items += a.tenants[k].items
	}
	if items < forgotten {
		return least.Seconds()
	}
	return spent / items
}

// perItem returns what an item of the tenant took of late, in seconds; that of the app before anything is known.
func (t *account) perItem(ofApp float64) float64 {
	if t.items < forgotten {
		return ofApp
	}
	return t.spent / t.items
}

// room is the machine time of an app, in seconds, that may wait before it counts as short: as much as runs, and a
// batch of items that take each seconds.
func (a *appShares) room(runs, batch int, each float64) float64 {
	return float64(max(runs, 0))*a.waits.Seconds()/float64(max(a.queries, 1)) + float64(batch)*each
}

// begin starts a shortage: only what waits has been asked for.
func (a *appShares) begin() {
	a.short, a.levelled = true, -1
	a.begun++
	for k := range a.tenants {
		t := &a.tenants[k]
		t.asked, t.got = t.waits.Seconds(), 0
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
		t := &a.tenants[k]
		t.asked *= keep
		t.got *= keep
		t.spent *= keep
		t.items *= keep
	}
}

// fill computes the level: who asks for less than its weight's worth gets all of it, and the others share what is left
// by weight (water filling). What there is to share is what was started, and what may wait.
func (s *shares) fill(a *appShares, room float64) {
	a.levelled, a.modest = s.now, false
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
				t.full, a.modest, again = true, true, true
				left -= t.asked
				weights -= s.weight(k)
			}
		}
	}
	if weights <= 0 {
		a.level = math.Inf(1)
	}
}

// started charges a query for a task that starts: its part of the batch's expected time, which may be Unknown. With the
// first task the whole estimate counts as got, since later stages are going to take the rest.
func (s *shares) started(rec *record, part time.Duration) {
	own, a := &rec.share, rec.query.App
	if own.estimate == 0 {
		return
	}
	s.age(a)
	t := &s.apps[a].tenants[rec.query.Tenant]
	if own.waits {
		s.leave(&rec.query, own)
		own.ahead, own.begun = own.estimate, s.apps[a].begun
		t.got += own.estimate.Seconds()
	}
	if part == profile.Unknown {
		part = own.ahead // the estimate stands
	}
	own.charged += part
	covered := min(part, own.ahead)
	own.ahead -= covered
	if own.begun == s.apps[a].begun {
		more := (part - covered).Seconds()
		t.got += more
		t.asked += more
	}
	if len(s.spec.Apps[a].Stages) == 1 {
		s.settle(rec)
	}
}

// settle takes back the part of an estimate that is not going to be charged.
func (s *shares) settle(rec *record) {
	own, a := &rec.share, &s.apps[rec.query.App]
	t := &a.tenants[rec.query.Tenant]
	if own.begun == a.begun {
		t.got = max(t.got-own.ahead.Seconds(), 0)
		t.asked = max(t.asked-own.ahead.Seconds(), 0)
	}
	own.ahead = 0
}

// ended forgets a query that waits, and settles one that has started.
func (s *shares) ended(rec *record) {
	if rec.share.estimate > 0 {
		s.leave(&rec.query, &rec.share)
		s.settle(rec)
	}
}

// served learns from a query that was served what its tenant's items take.
func (s *shares) served(rec *record) {
	if rec.share.estimate > 0 {
		t := &s.apps[rec.query.App].tenants[rec.query.Tenant]
		t.spent += rec.share.charged.Seconds()
		t.items += float64(rec.query.Items)
	}
}

// ran counts the measured time of a query's part of a batch.
func (s *shares) ran(rec *record, part time.Duration) {
	if rec.share.estimate > 0 {
		s.apps[rec.query.App].tenants[rec.query.Tenant].used += part
	}
}

// notTaken forgets a query that was refused after all.
func (s *shares) notTaken(x *serving.Query, own share) { s.leave(x, &own) }

// leave takes a query that no longer waits off the accounts.
func (s *shares) leave(x *serving.Query, own *share) {
	if !own.waits {
		return
	}
	a := &s.apps[x.App]
	t := &a.tenants[x.Tenant]
	t.waits -= own.estimate
	a.waits -= own.estimate
	a.queries--
	if !own.beyond {
		t.within -= own.estimate
	}
	own.waits = false
}

// check reports an account that does not hold what waits.
func (s *shares) check(records []record) error {
	if !s.counts() {
		return nil
	}
	found := make([]appShares, len(s.apps))
	for a := range found {
		found[a].tenants = make([]account, len(s.apps[a].tenants))
	}
	for r := range records {
		x, own := &records[r].query, &records[r].share
		if !own.waits {
			continue
		}
		found[x.App].waits += own.estimate
		found[x.App].queries++
		t := &found[x.App].tenants[x.Tenant]
		if t.waits += own.estimate; !own.beyond {
			t.within += own.estimate
		}
	}
	for a := range found {
		for k := range found[a].tenants {
			want, has := &found[a].tenants[k], &s.apps[a].tenants[k]
			if want.waits != has.waits || want.within != has.within {
				return fmt.Errorf("of tenant %d %v of app %q wait, %v within its share; counted are %v and %v", k,
					want.waits, s.spec.Apps[a].Name, want.within, has.waits, has.within)
			}
		}
		if want, has := &found[a], &s.apps[a]; want.waits != has.waits || want.queries != has.queries {
			return fmt.Errorf("%d queries and %v of app %q wait; counted are %d and %v", want.queries, want.waits,
				s.spec.Apps[a].Name, has.queries, has.waits)
		}
	}
	return nil
}
