package engine

import (
	"fmt"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Stateful stages keep something from one query of a stream to the next (Scrooge §3.1), so that they serve those of a
// stream one at a time and in the order of their arrival, whichever comes first to the stage. At each, one task of a
// stream has its turn: it waits for an instance, or runs. The others wait for theirs (fleet.Turn), those of later
// queries until the earlier ones are through: served there, passed over, or ended in whatever way. A batch that runs
// for a query which has ended is waited for all the same: the next must find what it leaves behind.

// streams follows the queries of every stream through the stateful stages of its app.
type streams struct {
	lanes []lane
	spare []int32
	byApp []table             // lanes by stream; without slots where no stream has come yet
	seats []int32             // by stage: its place among the stateful stages of its app; -1 for others
	held  [][]serving.StageID // by app: its stateful stages
}

// lane is the queries of a stream that have not ended, or of which something still runs, in the order of their arrival.
type lane struct {
	app         serving.AppID
	stream      uint64
	first, last fleet.Ref // records
	seats       []seat    // by place among the app's stateful stages
}

// seat is whose turn it is at a stage.
type seat struct {
	turn fleet.Ref // record: the first of the lane that is not through the stage; Nil for none
	task fleet.Ref // the one that waits for an instance or runs; Nil while none does
}

// grow takes up the stages of a spec that are new.
func (x *streams) grow(spec *serving.Spec) {
	for len(x.seats) < len(spec.Stages) {
		x.seats = append(x.seats, -1)
	}
	for a := len(x.held); a < len(spec.Apps); a++ {
		x.held, x.byApp = append(x.held, nil), append(x.byApp, table{})
		for _, s := range spec.Apps[a].Stages {
			if spec.Stages[s].Stateful {
				x.seats[s] = int32(len(x.held[a]))
				x.held[a] = append(x.held[a], s)
			}
		}
	}
}

// laneKey spreads the names of streams, which clients choose, over a table's slots. It is one to one (the finalizer of
// MurmurHash3) and 0 only for 0, which names none.
func laneKey(stream uint64) serving.QueryID {
	stream ^= stream >> 33
	stream *= 0xff51afd7ed558ccd
	stream ^= stream >> 33
	stream *= 0xc4ceb9fe1a85ec53
	return serving.QueryID(stream ^ stream>>33)
}

// enter puts an accepted query behind those of its stream, where any stage keeps their order.
func (e *Engine) enter(r fleet.Ref) {
	q := &e.records[r].query
	x := &e.streams
	if q.Stream == 0 || len(x.held[q.App]) == 0 {
		return
	}
	t := &x.byApp[q.App]
	if t.ids == nil {
		*t = newTable()
	}
	at := int32(t.get(laneKey(q.Stream)))
	if at < 0 {
		if n := len(x.spare); n > 0 {
			at = x.spare[n-1]
			x.spare = x.spare[:n-1]
		} else {
			at = int32(len(x.lanes))
			x.lanes = append(x.lanes, lane{})
		}
		t.put(laneKey(q.Stream), fleet.Ref(at))
		l := &x.lanes[at]
		*l = lane{app: q.App, stream: q.Stream, first: fleet.Nil, last: fleet.Nil, seats: l.seats[:0]}
		for range x.held[q.App] {
			l.seats = append(l.seats, seat{fleet.Nil, fleet.Nil})
		}
	}
	l := &x.lanes[at]
	rec := &e.records[r]
	rec.lane, rec.before, rec.after = at, l.last, fleet.Nil
	if l.last == fleet.Nil {
		l.first = r
	} else {
		e.records[l.last].after = r
	}
	l.last = r
	for k := range l.seats {
		if l.seats[k].turn == fleet.Nil {
			l.seats[k].turn = r
		}
	}
}

// depart takes a query of which nothing is left out of its stream.
func (e *Engine) depart(r fleet.Ref) {
	rec := &e.records[r]
	if rec.lane < 0 {
		return
	}
	x := &e.streams
	l := &x.lanes[rec.lane]
	if rec.before == fleet.Nil {
		l.first = rec.after
	} else {
		e.records[rec.before].after = rec.after
	}
	if rec.after == fleet.Nil {
		l.last = rec.before
	} else {
		e.records[rec.after].before = rec.before
	}
	if l.first == fleet.Nil {
		x.byApp[l.app].remove(laneKey(l.stream))
		x.spare = append(x.spare, rec.lane)
	}
}

// seat returns where a task has to have its turn before it may run; nil for one that need not.
func (e *Engine) seat(t *fleet.Task) *seat {
	k := e.streams.seats[t.Stage]
	if k < 0 {
		return nil
	}
	at := e.records[t.Record].lane
	if at < 0 {
		return nil
	}
	return &e.streams.lanes[at].seats[k]
}

// vacate ends the turn of a task that is about to be freed, if it has one.
func (e *Engine) vacate(ref fleet.Ref) {
	t := e.fleet.Task(ref)
	if x := e.seat(t); x != nil && x.task == ref {
		x.task = fleet.Nil
		e.proceed(e.records[t.Record].lane, t.Stage)
	}
}

// proceedAll lets those go on that wait behind a query which has ended.
func (e *Engine) proceedAll(r fleet.Ref) {
	if at := e.records[r].lane; at >= 0 {
		for _, s := range e.streams.held[e.streams.lanes[at].app] {
			e.proceed(at, s)
		}
	}
}

// proceed gives the next task of a stream its turn at a stage, if it is there and nobody has the turn.
func (e *Engine) proceed(at int32, s serving.StageID) {
	x := &e.streams.lanes[at].seats[e.streams.seats[s]]
	for x.turn != fleet.Nil && e.through(x.turn, s) {
		x.turn = e.records[x.turn].after
	}
	if x.turn == fleet.Nil || x.task != fleet.Nil {
		return
	}
	if x.task = e.firstPart(x.turn, s); x.task != fleet.Nil {
		e.fleet.Task(x.task).Turned = e.now
		e.fleet.Take(x.task)
		e.fleet.Wait(x.task)
		e.stages.add(int(s))
	}
}

// through tells whether nothing of a query will come to a stage any more.
func (e *Engine) through(r fleet.Ref, s serving.StageID) bool {
	rec := &e.records[r]
	return rec.ended || rec.flow >= 0 && e.flows[rec.flow].stages[e.place[s]].done
}

// firstPart returns, of the tasks of a query that wait for their turn at a stage, that of its first items; Nil where
// there is none.
func (e *Engine) firstPart(r fleet.Ref, s serving.StageID) fleet.Ref {
	first := fleet.Nil
	for ref := e.records[r].first; ref != fleet.Nil; ref = e.fleet.Sibling(ref) {
		if t := e.fleet.Task(ref); t.Stage == s && t.Place == fleet.Turn &&
			(first == fleet.Nil || t.Offset < e.fleet.Task(first).Offset) {
			first = ref
		}
	}
	return first
}

// checkStreams walks every lane: queries in the order of arrival, each in the lane of its stream; at every stateful
// stage the first that is not through has the turn, and one task of the stream at most is elsewhere than waiting for
// it.
func (e *Engine) checkStreams() error {
	x := &e.streams
	inLanes := 0
	for a := range x.byApp {
		t := &x.byApp[a]
		for slot, key := range t.ids {
			if key == 0 {
				continue
			}
			l := &x.lanes[t.refs[slot]]
			if l.app != serving.AppID(a) || laneKey(l.stream) != key || l.first == fleet.Nil {
				return fmt.Errorf("stream %d of app %d is found as one of app %d, or without queries", l.stream, l.app,
					a)
			}
			before := fleet.Nil
			for r := l.first; r != fleet.Nil; r = e.records[r].after {
				rec := &e.records[r]
				if rec.query.App != l.app || rec.query.Stream != l.stream || rec.before != before ||
					before != fleet.Nil && e.records[before].query.ID >= rec.query.ID {
					return fmt.Errorf("query %d stands in the wrong place of stream %d of app %d", rec.query.ID,
						l.stream, l.app)
				}
				before = r
				inLanes++
			}
			if l.last != before {
				return fmt.Errorf("stream %d of app %d ends with query %d, not with its last", l.stream, l.app,
					e.records[before].query.ID)
			}
			for _, s := range x.held[a] {
				if err := e.checkSeat(l, s); err != nil {
					return fmt.Errorf("stream %d of app %d at stage %q: %w", l.stream, a, e.spec.Stages[s].Name, err)
				}
			}
		}
	}
	for r := range e.records {
		rec := &e.records[r]
		if rec.lane >= 0 {
			inLanes--
		}
		for ref := rec.first; ref != fleet.Nil; ref = e.fleet.Sibling(ref) {
			if t := e.fleet.Task(ref); t.Place == fleet.Turn && e.seat(t) == nil {
				return fmt.Errorf("query %d waits for a turn at a stage that keeps no order", t.Query)
			}
		}
	}
	if inLanes != 0 {
		return fmt.Errorf("%d queries more stand in streams than know of it", inLanes)
	}
	return nil
}

func (e *Engine) checkSeat(l *lane, s serving.StageID) error {
	x := l.seats[e.streams.seats[s]]
	turn, task, there := fleet.Nil, fleet.Nil, 0
	for r := l.first; r != fleet.Nil; r = e.records[r].after {
		if turn == fleet.Nil && !e.through(r, s) {
			turn = r
		}
		for ref := e.records[r].first; ref != fleet.Nil; ref = e.fleet.Sibling(ref) {
			if t := e.fleet.Task(ref); t.Stage == s && t.Place != fleet.Turn {
				task = ref
				there++
			}
		}
	}
	switch {
	case turn != x.turn:
		return fmt.Errorf("it is the turn of record %d, want %d", x.turn, turn)
	case there > 1 || task != x.task:
		return fmt.Errorf("%d tasks have their turn at once, task %d among them, want at most task %d", there, task,
			x.task)
	case turn != fleet.Nil && task == fleet.Nil && e.firstPart(turn, s) != fleet.Nil:
		return fmt.Errorf("query %d waits for a turn that nobody has", e.records[turn].query.ID)
	}
	return nil
}
