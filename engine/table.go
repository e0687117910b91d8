package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// table maps the IDs of live queries to records: open addressing with linear probing, indexed by the low bits of the
// ID. IDs are given in sequence, so live ones rarely collide. At most half of the slots are in use.
type table struct {
	ids  []serving.QueryID // 0 is free
	refs []fleet.Ref
	n    int
	away int // entries that are not in their home slot
}

func newTable() table { return sizedTable(1024) }

func sizedTable(size int) table {
	return table{ids: make([]serving.QueryID, size), refs: make([]fleet.Ref, size)}
}

func (t *table) home(id serving.QueryID) int { return int(uint64(id) & uint64(len(t.ids)-1)) }

// find returns the slot of id, or the free slot for it.
func (t *table) find(id serving.QueryID) int {
	s := t.home(id)
	for t.ids[s] != 0 && t.ids[s] != id {
		s = (s + 1) & (len(t.ids) - 1)
	}
	return s
}

func (t *table) get(id serving.QueryID) fleet.Ref {
	if id == 0 {
		return fleet.Nil
	}
	if s := t.find(id); t.ids[s] == id {
		return t.refs[s]
	}
	return fleet.Nil
}

func (t *table) put(id serving.QueryID, r fleet.Ref) {
	if 2*(t.n+1) > len(t.ids) {
		old := *t
		*t = sizedTable(2 * len(old.ids))
		for s, id := range old.ids {
			if id != 0 {
				t.put(id, old.refs[s])
			}
		}
	}
	s := t.find(id)
	if t.ids[s] == 0 {
		t.n++
		if s != t.home(id) {
			t.away++
		}
	}
	t.ids[s], t.refs[s] = id, r
}

func (t *table) remove(id serving.QueryID) {
	s := t.find(id)
	if t.ids[s] != id {
		return
	}
	t.n--
	if s != t.home(id) {
		t.away--
	}
	mask := len(t.ids) - 1
	// Backward shift: an entry that was pushed past the hole moves into it. IDs in sequence form a long run, each in
	// its home slot; counting entries away from home saves walking that run.
	for next := (s + 1) & mask; t.away > 0 && t.ids[next] != 0; next = (next + 1) & mask {
		if h := t.home(t.ids[next]); (next-h)&mask >= (next-s)&mask {
			t.ids[s], t.refs[s] = t.ids[next], t.refs[next]
			if s == h {
				t.away--
			}
			s = next
		}
	}
	t.ids[s] = 0
}
