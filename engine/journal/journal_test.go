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
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func header() Header {
	return Header{System: "s", Router: "r", Batcher: "b", Statistic: "p95", Spec: &serving.Spec{
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
	in := []engine.Input{
		{
			Kind: engine.BatchDone, Batch: 3, Instance: 2, Result: engine.Broken, Took: time.Second,
			Emitted: []int32{1, 0},
		},
		{Kind: engine.InstanceChanged, Instance: 1, Change: engine.Lost, Variant: serving.None},
		{Kind: engine.InstanceChanged, Instance: 1, Change: engine.VariantReady, Variant: 0},
		{Kind: engine.PriceChanged, DeviceType: 1, Price: 0.25},
		{
			Kind: engine.IdleRecalled, Variant: serving.None, Recalled: &engine.Recalled{
				App: 2, Memory: []byte{1, 0, 255}, Older: 3, Idle: 4,
			},
		},
		{Kind: engine.StreamOpened, Variant: serving.None, Query: serving.Query{App: 1, Stream: 4}, Rate: 2.5},
		{Kind: engine.StreamClosed, Variant: serving.None, Query: serving.Query{Stream: 4}},
		{
			Kind: engine.PlanReady, Variant: serving.None, Plan: &plan.Plan{
				Planner: "p", Instances: []plan.Instance{{Slots: 1, Variants: []plan.Variant{{Limit: 1}}}},
			},
		},
		{Kind: engine.PlanFailed, Seq: 4, Variant: serving.None},
		{
			Kind: engine.QueryArrived, Variant: serving.None, Query: serving.Query{
				ID: 9, App: 1, Arrived: 5, Deadline: 7, Items: 3, Priority: 2, MinAccuracy: 0.5, Variant: serving.None,
				Stream: 1 << 63,
			},
		},
		{Kind: engine.QueryCancelled, Variant: serving.None, Query: serving.Query{ID: 9}},
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

func TestRoundTrip(t *testing.T) { written(t) }

func TestBadJournals(t *testing.T) {
	text := string(written(t))
	for want, bad := range map[string]string{
		"empty":              "",
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

// No file takes the reader down.
func FuzzReader(f *testing.F) {
	f.Add(written(f))
	f.Add([]byte(`{"Journal":1,"Spec":{}}` + "\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		for err == nil {
			_, err = r.Next()
		}
	})
}
