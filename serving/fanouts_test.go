package serving

import "testing"

// A copy with other fan-outs equals the spec otherwise; a spec that has grown does not.
func TestWithFans(t *testing.T) {
	s := &Spec{
		DeviceTypes: []DeviceType{{Name: "d"}}, Workers: []Worker{{Name: "w"}},
		Apps: []App{{Name: "a", Stages: []StageID{0, 1, 2}}},
		Stages: []Stage{
			{Name: "x", Next: []Edge{{To: 1, FanOut: 2, Rows: "boxes"}, {To: 2, FanOut: 3}}},
			{Name: "y", Next: []Edge{{To: 2, FanOut: 4}}}, {Name: "z"},
		},
	}
	c := s.WithFanOuts([][]float64{{5}})
	if n := c.Stages[0].Next; n[0] != (Edge{To: 1, FanOut: 5, Rows: "boxes"}) || n[1].FanOut != 3 ||
		c.Stages[1].Next[0].FanOut != 4 {
		t.Errorf("fan-outs %v and %v", n, c.Stages[1].Next)
	}
	if s.Stages[0].Next[0].FanOut != 2 {
		t.Error("the original has changed")
	}
	if !c.EqualButFanOuts(s) || !s.EqualButFanOuts(c) || !s.EqualButFanOuts(s) || s.EqualButFanOuts(nil) ||
		(*Spec)(nil).EqualButFanOuts(s) {
		t.Error("the same world is another, or none is one")
	}
	grown, _, _ := s.WithApp(App{Name: "b"}, Variant{Name: "v"}, nil)
	if grown.EqualButFanOuts(s) || s.WithClosed(0).EqualButFanOuts(s) {
		t.Error("a world that has grown is the same")
	}
}
