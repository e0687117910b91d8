package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// scenes is a detector, a cutter that needs the image besides the boxes, and a classifier.
func scenes() (*serving.Spec, []pipeline.Wiring) {
	spec := &serving.Spec{
		Apps: []serving.App{{Name: "scenes", Stages: []serving.StageID{0, 1, 2}}},
		Stages: []serving.Stage{
			{Name: "detect", Next: []serving.Edge{{To: 1, FanOut: 2, Rows: "boxes"}}},
			{Name: "cut", Joins: 1, Next: []serving.Edge{{To: 2, FanOut: 1}}},
			{Name: "read", Joins: 1},
		},
	}
	return spec, []pipeline.Wiring{
		{
			Takes: map[string]string{"pixels": "image"}, Gives: map[string]string{"b": "boxes"},
			Inputs: specs("pixels"), Outputs: specs("b", "score", "count"),
		},
		{Inputs: specs("image", "boxes"), Outputs: specs("crops")},
		{Takes: map[string]string{"digit": "crops"}, Inputs: specs("digit"), Outputs: specs("labels")},
	}
}

func specs(names ...string) (out []tensor.Spec) {
	for _, n := range names {
		out = append(out, tensor.Spec{Name: n, DType: tensor.Uint8, Shape: []int64{-1, 2}})
	}
	return out
}

func TestTaken(t *testing.T) {
	for want, w := range map[string]pipeline.Wiring{
		"[]": {},
		// All inputs, in the order of the model.
		"[{z z} {a crops}]": {Inputs: specs("z", "a"), Takes: map[string]string{"a": "crops"}},
		// What is said of them, by input.
		"[{a crops} {z image}]": {Takes: map[string]string{"z": "image", "a": "crops"}},
	} {
		if got := fmt.Sprint(w.Taken()); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	w := pipeline.Wiring{Takes: map[string]string{"a": "b"}, Gives: map[string]string{"b": "a"}}
	if w.TakenAs("a") != "b" || w.TakenAs("b") != "b" || w.GivenAs("b") != "a" || w.GivenAs("x") != "x" {
		t.Error("names that are not mapped stay, and those that are do not")
	}
}

func TestWireRefuses(t *testing.T) {
	for want, change := range map[string]func(*serving.Spec, []pipeline.Wiring){
		`sends 2 items to "cut"`: func(s *serving.Spec, _ []pipeline.Wiring) { s.Stages[0].Next[0].Rows = "" },
		`sends the rows of "b" to "cut", but gives [boxes score count]`: func(s *serving.Spec, _ []pipeline.Wiring) {
			s.Stages[0].Next[0].Rows = "b"
		},
		`stage "cut": "img" is no input of its model`: func(_ *serving.Spec, w []pipeline.Wiring) {
			w[1].Takes = map[string]string{"img": "image"}
		},
		`stage "read": "label" is no output of its model`: func(_ *serving.Spec, w []pipeline.Wiring) {
			w[2].Gives = map[string]string{"label": "x"}
		},
		`two of its outputs are called "score"`: func(_ *serving.Spec, w []pipeline.Wiring) {
			w[0].Gives = map[string]string{"count": "score", "b": "boxes"}
		},
	} {
		spec, w := scenes()
		change(spec, w)
		if _, err := pipeline.Wire(pipeline.New(spec, 0), w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestInterface(t *testing.T) {
	describe := func(s []tensor.Spec) string { return fmt.Sprint(pipeline.Names(s)) }
	spec, w := scenes()
	w[2].Inputs = specs("digit", "font") // which no stage gives
	in, out, err := pipeline.Interface(spec, w, 0)
	if err != nil || describe(in) != "[image font]" || describe(out) != "[labels]" || in[0].DType != tensor.Uint8 {
		t.Errorf("%v %v %v", in, out, err)
	}
	if in, _, _ := pipeline.Interface(spec, w[:1], 0); describe(in) != "[image]" {
		t.Errorf("%v of stages without wiring", in)
	}
	w[0].Outputs = nil // then nobody knows what else it gives
	if in, _, _ := pipeline.Interface(spec, w, 0); describe(in) != "[image]" {
		t.Error(in)
	}
	w[2].Outputs = nil
	if _, out, _ := pipeline.Interface(spec, w, 0); out != nil {
		t.Error(out)
	}
	w[0].Inputs = nil
	if in, _, _ := pipeline.Interface(spec, w, 0); in != nil {
		t.Error(in)
	}
	w[1].Takes = map[string]string{"img": "image"}
	_, _, err = pipeline.Interface(spec, w, 0)
	if err == nil || !strings.HasPrefix(err.Error(), `app "scenes": stage`) {
		t.Error(err)
	}
}

// Of two final stages that give one name, the answer has the tensor of the later, as the query is answered with it.
func TestAnswer(t *testing.T) {
	a := pipeline.NewTensors(graphOf(3, one(0, 1), one(0, 2)))
	give := func(at int, name string, d tensor.DType) { a.Give(at, tensor.Spec{Name: name, DType: d}) }
	give(0, "inner", tensor.FP32)
	give(1, "x", tensor.Uint8)
	give(1, "y", tensor.Uint8)
	give(2, "x", tensor.Int64)
	a.GivesNoMore(1)
	if got := a.Answer(); got != nil {
		t.Errorf("%v, and stage 2 may give more", got)
	}
	a.GivesNoMore(2)
	got := a.Answer()
	if fmt.Sprint(pipeline.Names(got)) != "[x y]" || got[0].DType != tensor.Int64 {
		t.Errorf("%v, want x of stage 2, and y", got)
	}
	if specs, _ := a.Of(1); specs[0].DType != tensor.Uint8 {
		t.Error("the answer changes what stage 1 gives")
	}
	give(2, "z", tensor.Invalid)
	if got := a.Answer(); got != nil {
		t.Errorf("%v, and nobody knows what z is", got)
	}
}

// Stages 1 and 2 are branches, 3 joins them. Both give x, as the first stage and the request do.
func TestSource(t *testing.T) {
	a := pipeline.NewTensors(graphOf(4, one(0, 1), one(0, 2), one(1, 3), one(2, 3)))
	for at := pipeline.Request; at < 3; at++ {
		if x := (tensor.Spec{Name: "x"}); at == pipeline.Request {
			a.Bring(x)
		} else if !a.Give(at, x) || a.Give(at, x) {
			t.Errorf("stage %d gives x once", at)
		}
	}
	a.Give(1, tensor.Spec{Name: "left"})
	for at := range 3 {
		a.GivesNoMore(at)
	}
	check := func(at int, name string, want int, certain bool) {
		t.Helper()
		if from, sure := a.Source(at, name); from != want || sure != certain {
			t.Errorf("stage %d takes %q from %d (certain: %v), want %d (%v)", at, name, from, sure, want, certain)
		}
	}
	check(0, "x", pipeline.Request, true)
	check(1, "x", 0, true)
	check(2, "x", 0, true) // not that of stage 1, which is no ancestor
	check(3, "x", 2, true)
	check(3, "left", 1, true)
	check(2, "left", pipeline.Request, true)
	if got := a.Visible(2); !slices.Equal(got, []string{"x"}) {
		t.Errorf("stage 2 sees %v", got)
	}
	if got := a.Visible(3); !slices.Equal(got, []string{"x", "left"}) {
		t.Errorf("stage 3 sees %v", got)
	}
	open := pipeline.NewTensors(graphOf(3, one(0, 1), one(1, 2)))
	open.Give(0, tensor.Spec{Name: "x"})
	open.GivesNoMore(0)
	a = open
	check(1, "x", 0, true)
	check(2, "x", 1, false) // stage 1 may give another x
	a.Give(1, tensor.Spec{Name: "x"})
	check(2, "x", 1, true)
}

// Random graphs with random names: the source of a name at a stage is the last of the stages on all ways to it that
// gives it, and it is not certain when one of which not all is known comes later.
func TestSourceInRandomGraphs(t *testing.T) {
	names := []string{"a", "b", "c"}
	for seed := uint64(1); seed <= 1000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(8)
		edges := randomEdges(rng, n)
		x := pipeline.NewTensors(graphOf(n, edges...))
		gives, all := make([][]string, n), make([]bool, n)
		for at := range n {
			for _, name := range names {
				if rng.IntN(4) == 0 {
					gives[at] = append(gives[at], name)
					x.Give(at, tensor.Spec{Name: name})
				}
			}
			if all[at] = rng.IntN(4) > 0; all[at] {
				x.GivesNoMore(at)
			}
		}
		for at := range n {
			onTheWay := make([]bool, n)
			var walk func(to int)
			walk = func(to int) {
				for _, e := range edges {
					if e.to == to {
						onTheWay[e.from] = true
						walk(e.from)
					}
				}
			}
			walk(at)
			for _, name := range names {
				want, certain := pipeline.Request, true
				for from := range n {
					switch {
					case !onTheWay[from]:
					case slices.Contains(gives[from], name):
						want, certain = from, true
					case !all[from]:
						want, certain = from, false
					}
				}
				if from, sure := x.Source(at, name); from != want || sure != certain {
					t.Fatalf("seed %d: %+v, stages give %v: stage %d takes %q from %d (certain: %v), want %d (%v)",
						seed, edges, gives, at, name, from, sure, want, certain)
				}
			}
		}
	}
}
