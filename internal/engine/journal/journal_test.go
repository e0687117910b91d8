package journal

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func header() Header {
	return Header{System: "s", Router: "r", Batcher: "b", Statistic: "p95", Learn: true, Spec: &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{}},
		Apps: []serving.App{
			{SLO: serving.SLO{Latency: 1, Percentile: 99}, Weight: 1, QueueLimit: 1, Stages: []serving.StageID{0}},
		},
		Stages: []serving.Stage{{Variants: []serving.VariantID{0}}}, Variants: []serving.Variant{{MaxBatch: 1}}}}
}

func written(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, header())
	if err != nil {
		t.Fatal(err)
	}
	broken := engine.NewBatchBroken(3, 2, time.Second)
	broken.Emitted = []int32{1, 0}
	in := []engine.Input{
		broken,
		engine.NewBatchDone(4, 2, time.Second, []int32{2}),
		engine.NewBatchExceeded(5, 2, time.Second),
		engine.NewMachineChanged(1, engine.MachineMissing, time.Minute),
		engine.NewMachineChanged(0, engine.MachineCame, time.Second),
		engine.NewInstanceLost(1),
		engine.NewVariantReady(1, 0),
		engine.NewLoadFailed(1, 1),
		engine.NewPriceChanged(1, 0.25),
		engine.NewSpecGrown(&engine.Growth{Spec: header().Spec, Known: plan.Known{Measurements: serving.Measurements{
			Load: []serving.LoadPoint{{Variant: 0, Load: 3}},
		}}}),
		engine.NewIdleRecalled(&engine.Recalled{App: 2, Memory: []byte{1, 0, 255}, Older: 3, Idle: 4}),
		engine.NewStreamOpened(1, 4, 2.5),
		engine.NewStreamClosed(0, 4),
		engine.NewPlanReady(&plan.Plan{
			Planner: "p", Instances: []plan.Instance{{Slots: 1, Variants: []plan.Variant{{Limit: 1}}}},
		}),
		engine.NewPlanFailed(4, errors.New("no room")),
		engine.NewQueryArrived(serving.Query{
			ID: 9, App: 1, Arrived: 5, Deadline: 7, Items: 3, Priority: 2, MinAccuracy: 0.5, Variant: serving.None,
			Stream: 1 << 63, Tenant: 2, Length: 77,
		}),
		engine.NewQueryCancelled(9),
	}
	for _, s := range []Step{{At: 1, In: in}, {At: 2}, {At: 3, In: in[:1]}} {
		if err := w.Step(s.At, s.In, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	st, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(st.In, in) {
		t.Fatalf("read   %+v\nwritten %+v", st.In, in)
	}
	for _, at := range []serving.Time{2, 3} { // a step in which nothing came is a step
		if st, err = r.Next(); err != nil || st.At != at {
			t.Fatalf("%+v %v", st, err)
		}
	}
	if _, err = r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A journal keeps, of every kind of input, the fields that its constructor sets.
func TestRoundTrip(t *testing.T) {
	text := string(written(t))
	for k := engine.BatchDone; k <= engine.QueryCancelled; k++ {
		if !strings.Contains(text, `{"k":"`+k.String()+`"`) {
			t.Errorf("no input of kind %v was written", k)
		}
	}
}

// A failure without a text, as earlier versions wrote it, reads as one without a text.
func TestFailureWithoutAText(t *testing.T) {
	old := strings.Replace(string(written(t)), `,"err":"no room"`, "", 1)
	r, err := NewReader(strings.NewReader(old))
	if err != nil {
		t.Fatal(err)
	}
	st, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range st.In {
		if in.Kind == engine.PlanFailed && (in.Failure.Seq != 4 || in.Failure.Err != "") {
			t.Errorf("read as %+v", *in.Failure)
		}
	}
	if strings.Contains(old, "no room") {
		t.Error("the text is still there")
	}
}

func TestBadJournals(t *testing.T) {
	text := string(written(t))
	for want, bad := range map[string]string{
		"empty":              "",
		"no journal":         "hello",
		"this is no journal": "hello\n" + text,
		"version 7":          strings.Replace(text, `"Journal":1`, `"Journal":7`, 1),
		"journal line 2":     strings.Replace(text, "plan-failed", "nonsense", 1),
		"Spec is missing":    `{"Journal":1}` + "\n",
		"instance change":    strings.Replace(text, `"lost"`, `"found"`, 1),
		"plan-ready without": strings.Replace(text, `"plan":{`, `"plane":{`, 1),
		"invalid character":  text + "}\n",
	} {
		r, err := NewReader(strings.NewReader(bad))
		for err == nil {
			_, err = r.Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
}

// A journal that is cut off anywhere gives every step that is whole, and then says in which line it ends. One that ends
// with a whole line, whether or not the end of the line is there, is whole.
func TestCutJournals(t *testing.T) {
	text := string(written(t))
	whole := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for n := range len(text) {
		lines := strings.Count(text[:n], "\n")
		full := n > 0 && (text[n-1] == '\n' || text[n] == '\n')
		if text[n] == '\n' {
			lines++
		}
		r, err := NewReader(strings.NewReader(text[:n]))
		steps := 0
		for err == nil {
			if _, err = r.Next(); err == nil {
				steps++
			}
		}
		cut := (*Cut)(nil)
		switch {
		case n == 0:
		case full && (!errors.Is(err, io.EOF) || steps != lines-1):
			t.Errorf("%d bytes are %d lines: %d steps, then %v", n, lines, steps, err)
		case !full && (!errors.As(err, &cut) || cut.Line != lines+1 || steps != max(lines-1, 0)):
			t.Errorf("%d bytes are %d whole lines: %d steps, then %v", n, lines, steps, err)
		}
	}
	if len(whole) < 2 {
		t.Error("the journal is too short to tell anything")
	}
}

// No file makes the reader panic.
func FuzzReader(f *testing.F) {
	f.Add(written(f))
	f.Add([]byte(`{"Journal":1,"Spec":{}}` + "\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(b)))()
		r, err := NewReader(bytes.NewReader(b))
		for err == nil {
			_, err = r.Next()
		}
	})
}
