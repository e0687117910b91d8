package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// letters is a runtime of four stages: split finds the letters of words, upper and double process every letter, sum
// joins the results and counts the queries of the stream.
type letters struct{}

func (letters) Launch(context.Context, dataplane.InstanceSpec) (dataplane.Runner, error) {
	return letters{}, nil
}
func (letters) Load(context.Context, serving.VariantID, int) error { return nil }
func (letters) Unload(context.Context, serving.VariantID) error    { return nil }
func (letters) Close() error                                       { return nil }

func text(name string, elements ...string) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.Bytes, Shape: []int64{int64(len(elements))}}
	for _, e := range elements {
		t.Data = tensor.AppendBytes(t.Data, []byte(e))
	}
	return t
}

func (letters) Run(_ context.Context, b *dataplane.Batch) error {
	for k := range b.Portions {
		p := &b.Portions[k]
		in := map[string][]string{}
		for _, t := range p.Inputs {
			_ = tensor.EachBytes(t.Data, func(e []byte) { in[t.Name] = append(in[t.Name], string(e)) })
		}
		var out []string
		switch b.Variant {
		case 0:
			for _, w := range in["word"] {
				out = append(out, strings.Split(w, "")...)
			}
			p.Outputs = []tensor.Tensor{text("letters", out...)}
		case 1:
			for _, l := range in["letter"] {
				out = append(out, strings.ToUpper(l))
			}
			p.Outputs = []tensor.Tensor{text("big", out...)}
		case 2:
			for _, l := range in["letter"] {
				out = append(out, l+l)
			}
			p.Outputs = []tensor.Tensor{text("twice", out...)}
		case 3:
			p.State = append([]byte{}, append(p.State, '+')...)
			for k := range in["big"] {
				out = append(out, in["big"][k]+in["twice"][k]+string(p.State))
			}
			p.Outputs = []tensor.Tensor{text("sum", out...)}
		}
	}
	return nil
}

// A diamond over a real data plane, as an HTTP client sees it: metadata of the whole app, rows of 0, 1, 3 and 17,
// streams, timings.
func TestPipelineOverHTTP(t *testing.T) {
	join := []serving.Edge{{To: 3, FanOut: 1}}
	w := simtest.Staged([]serving.Stage{{
		Name: "split", Next: []serving.Edge{{To: 1, FanOut: 3, Rows: "letters"}, {To: 2, FanOut: 3, Rows: "letters"}},
	},
		{Name: "upper", Next: join}, {Name: "double", Next: join}, {Name: "sum", Stateful: true}}, 2, time.Microsecond,
		time.Microsecond, time.Minute, 4)
	words := func(names ...string) (out []tensor.Spec) {
		for _, n := range names {
			out = append(out, tensor.Spec{Name: n, DType: tensor.Bytes, Shape: []int64{-1}})
		}
		return out
	}
	letter := map[string]string{"letter": "letters"}
	wiring := []pipeline.Wiring{{Inputs: words("word"), Outputs: words("letters")}, {
		Inputs: words("letter"), Takes: letter, Outputs: words("big"),
	},
		{Inputs: words("letter"), Takes: letter, Outputs: words("twice")}, {
			Inputs: words("big", "twice"), Outputs: words("sum"), Gives: map[string]string{"sum": "found"},
		}}
	sys, err := systems.Get("sluice")
	if err != nil {
		t.Fatal(err)
	}
	e, err := sys.Engine(w.Spec, w.Profile, w.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	p, err := dataplane.New(dataplane.Config{Spec: w.Spec, Engine: e, Initial: w.Plan, Wiring: wiring, Rows: 20,
		Backend: func(serving.WorkerID) dataplane.Backend {
			return letters{}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := &server.Model{
		Name: "spell", Batched: true, MaxBatch: 4, Versions: []server.Version{{Variant: 3, Name: "sum", Version: "1"}},
	}
	if m.Inputs, m.Outputs, err = pipeline.Interface(w.Spec, wiring, 0); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{HTTP: "127.0.0.1:0"}, &live{plane: p, model: m})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx) }()
	defer func() { stop(); <-ended; http.DefaultClient.CloseIdleConnections() }()
	get := func(r *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	url := "http://" + srv.HTTPAddr() + "/v2/models/spell"
	if _, meta := get(http.Get(url)); !strings.Contains(meta,
		`"inputs":[{"name":"word","datatype":"BYTES","shape":[-1]}]`) ||
		!strings.Contains(meta, `"outputs":[{"name":"found",`) {
		t.Errorf("metadata: %s", meta)
	}
	ask := func(parameters, words string, n int) (int, string) {
		return get(http.Post(url+"/infer", "application/json",
			strings.NewReader(fmt.Sprintf(
				`{"parameters":{%s},"inputs":[{"name":"word","datatype":"BYTES","shape":[%d],"data":[%s]}]}`,
				parameters, n, words))))
	}
	turn := ""
	for _, word := range []string{"", "a", "abc", "abcdefghijklmnopq"} {
		var want []string
		if word != "" { // the last stage sees no query in which nothing was found
			turn += "+"
		}
		for _, l := range strings.Split(word, "") {
			if l != "" {
				want = append(want, strings.ToUpper(l)+l+l+turn)
			}
		}
		code, body := ask(`"sequence_id":"s","stage_timings":true`, fmt.Sprintf("%q", word), 1)
		var got struct {
			Parameters map[string]any
			Outputs    []struct {
				Name  string
				Shape []int
				Data  []string
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || len(got.Outputs) != 1 {
			t.Fatalf("%q: %d %s", word, code, body)
		}
		o := got.Outputs[0]
		// Where the last stage runs in several batches, each counts a query: only the letters are compared then.
		same := o.Name == "found" && len(o.Data) == len(want) && o.Shape[0] == len(want)
		for k := range want {
			same = same && strings.TrimRight(o.Data[k], "+") == strings.TrimRight(want[k], "+")
		}
		if !same || len(want) > 0 && len(want) <= 4 && o.Data[0] != want[0] {
			t.Errorf("%q: %v, want %v", word, o, want)
		}
		turn = strings.Repeat("+", len(turn)+max((len(want)+3)/4-1, 0))
		if len(want) > 0 && got.Parameters["stage.sum.items"] != float64(len(want)) || len(want) == 0 &&
			got.Parameters["stage.sum.items"] != nil || got.Parameters["stage.split.items"] != 1.0 {
			t.Errorf("%q: %v", word, got.Parameters)
		}
	}
	if code, body := ask("", `"more than twenty letters"`, 1); code != 500 ||
		!strings.Contains(body, `at most 20 are taken`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := ask("", `"ab","","c"`, 3); code != 200 ||
		!strings.Contains(body, `"data":["Aaa+","Bbb+","Ccc+"]`) {
		t.Errorf("%d %s", code, body)
	}
}
