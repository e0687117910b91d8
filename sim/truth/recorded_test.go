package truth

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Every stage of a replayed query gets the items that it had, also in parts. A query without a record is like the one
// before it.
func TestRecorded(t *testing.T) {
	spec := &serving.Spec{
		Apps: []serving.App{{Name: "scenes", Stages: []serving.StageID{0, 1, 2}}},
		Stages: []serving.Stage{
			{Name: "detect", Next: []serving.Edge{{To: 1, FanOut: 2.5}}}, {
				Name: "cut", Joins: 1, Next: []serving.Edge{{To: 2, FanOut: 1}},
			}, {Name: "read", Joins: 1},
		},
	}
	r := NewRecorded(spec, [][]StageSeen{nil, {{2, 0}, {5, 0}, {4, 70}}, nil, {{1, 0}, {}, {}}})
	frame := func(id serving.QueryID) Frame { return r.Frame(&serving.Query{ID: id}) }
	if f := frame(1); f.Fan(0, 0) != 2.5 || f.Fan(1, 0) != 1 {
		t.Error("before anything is known the graph's fan-outs hold")
	}
	for _, id := range []serving.QueryID{2, 3, 99} {
		f := frame(id)
		if ItemsSent(f, 0, 0, 0, 2) != 5 || ItemsSent(f, 0, 0, 0, 1)+ItemsSent(f, 0, 0, 1, 1) != 5 ||
			ItemsSent(f, 1, 0, 0, 5) != 4 ||
			f.Balloon(1) != 1 {
			t.Errorf("query %d: %v, %v", id, f.Fan(0, 0), f.Fan(1, 0))
		}
	}
	if long := frame(2).(Lengthy); long.Length(2) != 70 || long.Length(1) != 0 {
		t.Errorf("lengths %d and %d, want 70 and none", long.Length(2), long.Length(1))
	}
	if f := frame(4); ItemsSent(f, 0, 0, 0, 1) != 0 || f.Fan(1, 0) != 0 {
		t.Error("a query in which nothing was found sends nothing")
	}
}
