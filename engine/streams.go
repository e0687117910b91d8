package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Stateful stages keep state from one query of a stream to the next (Scrooge §3.1). So they serve the queries of a
// stream one at a time and in order of arrival. At each stage one task of a stream has its turn: it waits for an
// instance, or runs. The others wait for their turn (fleet.Turn), those of later queries until the earlier queries are
// through: served there, passed over, or ended. A running batch of an ended query is awaited as well, because the next
// query needs the state that it leaves.

// streams keep the queries of every stream in order at the stateful stages of its app.
type streams struct {
	*world
	agenda  *agenda
	records *records
	flows   *flows

	list     []stream
	free     []int32
	byApp    []table             // into list by number; without slots where no stream has come yet
	stateful [][]serving.StageID // by app
	index    []int32             // by stage: among the stateful stages of its app; -1 for others
}

// stream lists the queries of a stream that have not ended or still have a running task, in order of arrival.
type stream struct {
	app         serving.AppID
	number      uint64    // that its client gave
	first, last fleet.Ref // records
	turns       []turn    // by index of its stateful stages
}

// turn records whose turn it is at a stage.
type turn struct {
	query fleet.Ref // record: the first of the stream that is not through the stage; Nil for none
	task  fleet.Ref // the one that waits for an instance or runs; Nil while none does
}

func newStreams(w *world, a *agenda, r *records, f *flows) *streams {
	x := &streams{world: w, agenda: a, records: r, flows: f}
	fresh := w.spec.FreshSince(&serving.Spec{})
	x.grow(&fresh)
	return x
}

// grow extends the tables to the fresh apps and stages of a spec.
func (x *streams) grow(fresh *serving.Fresh) {
	x.index = serving.Renew(x.index, fresh.Stages, func(serving.StageID) int32 { return -1 })
	x.stateful, x.byApp = serving.Cleared(x.stateful, fresh.Apps), serving.Cleared(x.byApp, fresh.Apps)
	for _, a := range fresh.Apps {
		for _, s := range x.spec.Apps[a].Stages {
			if x.spec.Stages[s].Stateful {
				x.index[s] = int32(len(x.stateful[a]))
				x.stateful[a] = append(x.stateful[a], s)
			}
		}
	}
}

// streamKey spreads the numbers of streams, which clients choose, over a table's slots. It is one to one (the finalizer
// of MurmurHash3). It is 0 only for 0, which is no stream.
func streamKey(number uint64) serving.QueryID {
	number ^= number >> 33
	number *= 0xff51afd7ed558ccd
	number ^= number >> 33
	number *= 0xc4ceb9fe1a85ec53
	return serving.QueryID(number ^ number>>33)
}

// enter appends an accepted query to its stream, where any stage keeps their order.
func (x *streams) enter(r fleet.Ref) {
	rec := x.records.at(r)
	q := &rec.query
	if q.Stream == 0 || len(x.stateful[q.App]) == 0 {
		return
	}
	at := x.of(q)
	l := &x.list[at]
	rec.stream, rec.before, rec.after = at, l.last, fleet.Nil
	if l.last == fleet.Nil {
		l.first = r
	} else {
		x.records.at(l.last).after = r
	}
	l.last = r
	for k := range l.turns {
		if l.turns[k].query == fleet.Nil {
			l.turns[k].query = r
		}
	}
}

// of returns the stream of a query, and opens it if there is none.
func (x *streams) of(q *serving.Query) int32 {
	t := &x.byApp[q.App]
	if t.ids == nil {
		*t = newTable()
	}
	key := streamKey(q.Stream)
	if at := int32(t.get(key)); at >= 0 {
		return at
	}
	var at int32
	if n := len(x.free); n > 0 {
		at = x.free[n-1]
		x.free = x.free[:n-1]
	} else {
		x.list = append(x.list, stream{})
		at = int32(len(x.list) - 1)
	}
	t.put(key, fleet.Ref(at))
	l := &x.list[at]
	*l = stream{app: q.App, number: q.Stream, first: fleet.Nil, last: fleet.Nil, turns: l.turns[:0]}
	for range x.stateful[q.App] {
		l.turns = append(l.turns, turn{fleet.Nil, fleet.Nil})
	}
	return at
}

// leave removes a query without tasks from its stream.
func (x *streams) leave(r fleet.Ref) {
	rec := x.records.at(r)
	if rec.stream < 0 {
		return
	}
	l := &x.list[rec.stream]
	if rec.before == fleet.Nil {
		l.first = rec.after
	} else {
		x.records.at(rec.before).after = rec.after
	}
	if rec.after == fleet.Nil {
		l.last = rec.before
	} else {
		x.records.at(rec.after).before = rec.before
	}
	if l.first == fleet.Nil {
		x.byApp[l.app].remove(streamKey(l.number))
		x.free = append(x.free, rec.stream)
	}
}

// turn returns the turn that a task has to have before it may run; nil for one that needs none.
func (x *streams) turn(t *fleet.Task) *turn {
	k := x.index[t.Stage()]
	if k < 0 {
		return nil
	}
	at := x.records.at(t.Record()).stream
	if at < 0 {
		return nil
	}
	return &x.list[at].turns[k]
}

// ordered reports whether a stage serves the queries of a stream in their order.
func (x *streams) ordered(s serving.StageID) bool { return x.index[s] >= 0 }

// wait puts a task that is in no place into its stage's central queue, or lets it wait for its turn.
func (x *streams) wait(ref fleet.Ref) {
	t := x.fleet.Task(ref)
	if turn := x.turn(t); turn == nil || turn.task == ref {
		x.fleet.Wait(ref)
	} else {
		x.fleet.WaitTurn(ref)
		x.next(x.records.at(t.Record()).stream, t.Stage())
	}
}

// endTurn ends the turn of a task that is about to be released, if it has one.
func (x *streams) endTurn(ref fleet.Ref) {
	t := x.fleet.Task(ref)
	if turn := x.turn(t); turn != nil && turn.task == ref {
		turn.task = fleet.Nil
		x.next(x.records.at(t.Record()).stream, t.Stage())
	}
}

// ended gives turns to the queries behind one that has ended.
func (x *streams) ended(r fleet.Ref) {
	if at := x.records.at(r).stream; at >= 0 {
		for _, s := range x.stateful[x.list[at].app] {
			x.next(at, s)
		}
	}
}

// passed gives the turn at a stage to the query behind one that is through it.
func (x *streams) passed(r fleet.Ref, s serving.StageID) {
	if at := x.records.at(r).stream; at >= 0 && x.index[s] >= 0 {
		x.next(at, s)
	}
}

// next gives the next task of a stream its turn at a stage, if there is one and no other has it.
func (x *streams) next(at int32, s serving.StageID) {
	turn := &x.list[at].turns[x.index[s]]
	for turn.query != fleet.Nil && x.through(turn.query, s) {
		turn.query = x.records.at(turn.query).after
	}
	if turn.query == fleet.Nil || turn.task != fleet.Nil {
		return
	}
	if turn.task = x.firstTask(turn.query, s); turn.task != fleet.Nil {
		x.fleet.TakeTurn(turn.task, x.now)
		x.agenda.routeStage(s)
	}
}

// through reports whether nothing of a query will come to a stage any more.
func (x *streams) through(r fleet.Ref, s serving.StageID) bool {
	rec := x.records.at(r)
	return rec.ended || rec.flow >= 0 && x.flows.over(rec.flow, s)
}

// firstTask returns, of the tasks of a query that wait for their turn at a stage, that of its first items; Nil where
// there is none.
func (x *streams) firstTask(r fleet.Ref, s serving.StageID) fleet.Ref {
	first := fleet.Nil
	for ref := x.records.at(r).first; ref != fleet.Nil; ref = x.fleet.Sibling(ref) {
		if t := x.fleet.Task(ref); t.Stage() == s && t.Place() == fleet.Turn &&
			(first == fleet.Nil || t.Offset() < x.fleet.Task(first).Offset()) {
			first = ref
		}
	}
	return first
}

// check verifies every stream: queries in order of arrival, each in its own stream. At every stateful stage the first
// query that is not through has the turn, and at most one task of the stream does not wait for its turn.
func (x *streams) check() error {
	found := 0
	for a := range x.byApp {
		t := &x.byApp[a]
		for slot, key := range t.ids {
			if key == 0 {
				continue
			}
			l := &x.list[t.refs[slot]]
			if l.app != serving.AppID(a) || streamKey(l.number) != key || l.first == fleet.Nil {
				return fmt.Errorf("stream %d of app %d is found as one of app %d, or without queries", l.number, l.app,
					a)
			}
			n, err := x.checkOrder(l)
			if err != nil {
				return fmt.Errorf("stream %d of app %d: %w", l.number, a, err)
			}
			found += n
			for _, s := range x.stateful[a] {
				if err := x.checkTurn(l, s); err != nil {
					return fmt.Errorf("stream %d of app %d at stage %q: %w", l.number, a, x.spec.Stages[s].Name, err)
				}
			}
		}
	}
	for r := range x.records.list {
		rec := &x.records.list[r]
		if rec.stream >= 0 {
			found--
		}
		for ref := rec.first; ref != fleet.Nil; ref = x.fleet.Sibling(ref) {
			if t := x.fleet.Task(ref); t.Place() == fleet.Turn && x.turn(t) == nil &&
				(x.ordered(t.Stage()) || x.spec.Stages[t.Stage()].Queue == nil) {
				return fmt.Errorf("query %d waits for a turn at a stage that keeps no order", t.Query())
			}
		}
	}
	if found != 0 {
		return fmt.Errorf("%d queries more stand in streams than know of it", found)
	}
	return nil
}

// checkOrder checks the order of a stream and returns how many queries it has.
func (x *streams) checkOrder(l *stream) (n int, err error) {
	before := fleet.Nil
	for r := l.first; r != fleet.Nil; r = x.records.at(r).after {
		rec := x.records.at(r)
		if rec.query.App != l.app || rec.query.Stream != l.number || rec.before != before ||
			before != fleet.Nil && x.records.at(before).query.ID >= rec.query.ID {
			return 0, fmt.Errorf("query %d stands in the wrong place", rec.query.ID)
		}
		before = r
		n++
	}
	if l.last != before {
		return 0, fmt.Errorf("it ends with query %d, not with its last", x.records.at(before).query.ID)
	}
	return n, nil
}

func (x *streams) checkTurn(l *stream, s serving.StageID) error {
	has := l.turns[x.index[s]]
	query, task, there := fleet.Nil, fleet.Nil, 0
	for r := l.first; r != fleet.Nil; r = x.records.at(r).after {
		if query == fleet.Nil && !x.through(r, s) {
			query = r
		}
		for ref := x.records.at(r).first; ref != fleet.Nil; ref = x.fleet.Sibling(ref) {
			if t := x.fleet.Task(ref); t.Stage() == s && t.Place() != fleet.Turn {
				task = ref
				there++
			}
		}
	}
	switch {
	case query != has.query:
		return fmt.Errorf("it is the turn of record %d, want %d", has.query, query)
	case there > 1 || task != has.task:
		return fmt.Errorf("%d tasks have their turn at once, task %d among them, want at most task %d", there, task,
			has.task)
	case query != fleet.Nil && task == fleet.Nil && x.firstTask(query, s) != fleet.Nil:
		return fmt.Errorf("query %d waits for a turn that no query has", x.records.at(query).query.ID)
	}
	return nil
}
