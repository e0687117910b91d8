package server

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// ask sends the k-th query of an event.
func (w *storm) ask(e stormEvent, k int) {
	rng := rand.New(rand.NewPCG(w.script.seed, uint64(e.at)+uint64(k)))
	time.Sleep(time.Duration(rng.Int64N(int64(e.long))))
	names := [...]string{"m0", "m1", "f0", "f1"}
	name, ctx, l := names[rng.IntN(len(names))], context.Background(), w.life
	if e.who == ensemble {
		name = "e0"
	}
	if l.isOver() {
		return
	}
	if rng.IntN(8) == 0 {
		limit, done := context.WithTimeout(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
		defer done()
		ctx = limit
	}
	begun := time.Now()
	code, _ := w.infer(ctx, l, name, 1+rng.IntN(3))
	if took := time.Since(begun); took > stormTimeout+stormBound {
		w.fail("a query of %s was answered with %d after %v", name, code, took)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Queries++
	if code == http.StatusOK {
		w.counts.Served++
	}
}

// looks are what people and programs ask of a server beside queries; M is a model, N a number.
var looks = strings.Fields(`
	GET/v2 GET/v2/models/M GET/v2/models/M/config GET/v2/models/M/stats GET/v2/models/stats GET/v2/models/M/ready
	GET/v2/models/M/versions/N GET/v2/models/M/versions/N/config GET/v2/models/M/versions/N/stats
	GET/v2/models/M/versions/N/ready GET/v2/models/M/trace/setting GET/v2/trace/setting GET/v2/logging
	GET/v2/health/live GET/v2/health/ready POST/v2/repository/index GET/metrics GET/prices GET/debug/decisions
	GET/debug/explain?query=N GET/v1/functions/ GET/v1/functions/M GET/v1/functions/M/logs GET/api/v1/apps/M
	GET/api/v1/batches GET/api/v1/history GET/api/v1/info GET/api/v1/machines GET/api/v1/overview GET/api/v1/plans
	GET/api/v1/plans/N GET/api/v1/queries GET/api/v1/queries/N GET/api/v1/seconds GET/api/v1/series
	GET/api/v1/setting GET/api/v1/stream GET/v2/systemsharedmemory/status GET/v2/cudasharedmemory/status
	POST/api/v1/what-if PUT/prices POST/v2/models/M/generate POST/v2/models/M/versions/N/infer`)

// look asks for something else than a query, the k-th of an event.
func (w *storm) look(e stormEvent, k int) {
	rng := rand.New(rand.NewPCG(w.script.seed, 1<<40+uint64(e.at)+uint64(k)))
	time.Sleep(time.Duration(rng.Int64N(int64(e.long))))
	l := w.life
	if l.isOver() {
		return
	}
	names := [...]string{"m0", "m1", "f0", "f1", "e0", "s0", "p0", "none"}
	what := strings.NewReplacer("M", names[rng.IntN(len(names))], "N", fmt.Sprint(rng.IntN(12))).Replace(
		looks[rng.IntN(len(looks))])
	method, path, _ := strings.Cut(what, "/")
	var body []byte
	if method != http.MethodGet {
		body = []byte("{}")
	}
	ctx, done := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(60_000))*time.Millisecond)
	defer done()
	code, text := w.call(ctx, l, method, "/"+path, body)
	switch {
	case code == http.StatusInternalServerError && !strings.Contains(text, "on purpose"):
		w.fail("%s /%s: %d %s", method, path, code, text)
	case code == 0 && ctx.Err() == nil && !l.isOver() && !strings.Contains(text, "closed") &&
		!strings.Contains(text, "EOF"):
		w.fail("%s /%s: %s", method, path, text)
	}
}

// askSequence sends the queries of a sequence one after the other, until one fails.
func (w *storm) askSequence(e stormEvent) {
	l := w.life
	for k := 1; k <= 1+e.n%8 && !l.isOver(); k++ {
		code, data := w.overHTTP(context.Background(), l, "s0", 1, map[string]any{
			"sequence_id": e.at.String(), "sequence_start": k == 1, "sequence_end": k == 1+e.n%8,
		})
		w.mu.Lock()
		w.counts.Queries++
		if code == http.StatusOK {
			w.counts.Served++
			if want := float32(k * sumNumber); !slices.Equal(data, []float32{want, want}) {
				w.failing("query %d of the sequence %v is answered with %v, want %v", k, e.at, data, want)
			}
		}
		w.mu.Unlock()
		if code != http.StatusOK {
			return
		}
		time.Sleep(e.long / 8)
	}
}

// isOver reports whether a life takes no more requests.
func (l *stormLife) isOver() bool { return l.calls.Err() != nil }

// infer sends a query and returns the code and what was added. A number that its name did not have meanwhile is a
// failure. A function is replaced machine by machine: what it was before answers beside what it is.
func (w *storm) infer(ctx context.Context, l *stormLife, name string, items int) (code int, number float32) {
	w.mu.Lock()
	x := w.names[name]
	from := x.sure
	if name[0] == 'f' {
		from = x.deleted
	}
	w.mu.Unlock()
	var data []float32
	switch {
	case name == "s0":
		code, data = w.overHTTP(ctx, l, name, items, map[string]any{
			"sequence_id": "alone", "sequence_start": true, "sequence_end": true,
		})
	case items%2 == 0:
		code, data = w.overGRPC(ctx, l, name, items)
	default:
		code, data = w.overHTTP(ctx, l, name, items, nil)
	}
	if code != http.StatusOK {
		return code, 0
	}
	if len(data) != 2*items {
		w.fail("%s: the answer to %d items is %v", name, items, data)
		return code, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	number = data[0]
	could := make(map[float32]bool)
	for k, was := range x.numbers[from:] {
		could[float32(was)] = was >= 0
		for _, is := range x.numbers[from+k:] {
			if name == "e0" && was >= 0 && is >= 0 { // items may meet the former member in a stage, and then the next
				could[float32(was+is)/2] = true
			}
		}
	}
	if slices.ContainsFunc(data, func(y float32) bool { return !could[y] || name != "e0" && y != number }) {
		w.failing("%s added %v, it can be one of %v", name, data, x.numbers[from:])
	}
	return code, number
}

// overHTTP sends a query and returns the answer's status and numbers.
func (w *storm) overHTTP(ctx context.Context, l *stormLife, name string, items int, parameters map[string]any) (
	int, []float32) {
	all := map[string]any{"timeout": stormTimeout.Microseconds()}
	maps.Copy(all, parameters)
	query, err := json.Marshal(map[string]any{
		"parameters": all,
		"inputs": []any{map[string]any{
			"name": "x", "datatype": "FP32", "shape": []int{items, 2}, "data": make([]float32, 2*items),
		}},
	})
	must(err)
	code, text := w.call(ctx, l, "POST", "/v2/models/"+name+"/infer", query)
	var said struct{ Outputs []struct{ Data []float32 } }
	if code != http.StatusOK {
		return code, nil
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || len(said.Outputs) != 1 {
		w.fail("%s: %v, an answer is %s", name, err, text)
		return code, nil
	}
	return code, said.Outputs[0].Data
}

// overGRPC does the same, with the status that HTTP has for an answer's.
func (w *storm) overGRPC(ctx context.Context, l *stormLife, name string, items int) (int, []float32) {
	timeout := pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{
		Int64Param: stormTimeout.Microseconds(),
	}}
	answer, err := pb.NewGRPCInferenceServiceClient(l.grpc).ModelInfer(ctx, &pb.ModelInferRequest{
		ModelName: name, Parameters: map[string]*pb.InferParameter{"timeout": &timeout},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{
			Name: "x", Datatype: "FP32", Shape: []int64{int64(items), 2},
			Contents: &pb.InferTensorContents{Fp32Contents: make([]float32, 2*items)},
		}},
	}, grpc.WaitForReady(false))
	switch status.Code(err) {
	case codes.OK:
	case codes.Internal, codes.Unknown:
		return http.StatusInternalServerError, nil
	case codes.NotFound:
		return http.StatusNotFound, nil
	default:
		return http.StatusServiceUnavailable, nil
	}
	outputs, err := oip.DecodeOutputs(answer)
	if err != nil || len(outputs) != 1 {
		w.fail("%s: %v, an answer is %v", name, err, answer)
		return http.StatusOK, nil
	}
	data := make([]float32, len(outputs[0].Data)/4)
	for k := range data {
		data[k] = math.Float32frombits(binary.LittleEndian.Uint32(outputs[0].Data[4*k:]))
	}
	return http.StatusOK, data
}
