package openinference

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// tensorFlow answers as TensorFlow Serving does, in its spelling.
type tensorFlow struct {
	metadata string // "" for a server without
	answer   string
	status   int
	asked    []string
}

func (s *tensorFlow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/models/half/versions/3:predict":
		s.asked = append(s.asked, string(body))
		if s.status != 0 {
			w.WriteHeader(s.status)
		}
		_, _ = io.WriteString(w, s.answer)
	case r.URL.Path == "/v1/models/half/versions/3":
		_, _ = io.WriteString(w, `{
 "model_version_status": [
  {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
 ]
}`)
	case r.URL.Path == "/v1/models/half/versions/3/metadata" && s.metadata != "":
		_, _ = io.WriteString(w, s.metadata)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error": "Malformed request: `+r.Method+" "+r.URL.Path+`"}`)
	}
}

const halfMetadata = `{"model_spec": {"name": "half", "signature_name": "", "version": "3"},
"metadata": {"signature_def": {"signature_def": {
 "__saved_model_init_op": {"inputs": {}, "outputs": {}, "method_name": ""},
 "serving_default": {
  "inputs": {"x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}],
    "unknown_rank": false}, "name": "serving_default_x:0"}},
  "outputs": {
   "y": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}],
    "unknown_rank": false}, "name": "StatefulPartitionedCall:0"},
   "label": {"dtype": "DT_STRING", "tensor_shape": {"dim": [], "unknown_rank": true},
    "name": "StatefulPartitionedCall:1"}},
  "method_name": "tensorflow/serving/predict"}}}}}`

func floats(values ...float32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func half(t *testing.T, s *tensorFlow, outputs []tensor.Spec) (dataplane.Runner, *Backend) {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	b, err := New(Config{Address: strings.TrimPrefix(h.URL, "http://"), V1: true, PollEvery: time.Millisecond,
		Models: map[serving.VariantID]Model{0: {Name: "half", Version: "3", Batched: true, Outputs: outputs}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{Variants: []serving.VariantID{0}, BatchLimit: 4, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, b
}

func pair(values ...float32) dataplane.Portion {
	return dataplane.Portion{Items: 1, Inputs: []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, 2}, Data: floats(values...)},
	}}
}

// Queries are joined into one request of TensorFlow Serving's REST protocol, and its answer is cut into theirs.
func TestTensorFlowServing(t *testing.T) {
	s := &tensorFlow{metadata: halfMetadata,
		answer: "{\n \"outputs\": {\n \"y\": [[0.5, 1], [NaN, 2e-1]],\n \"label\": [\"a\", {\"b64\": \"/w==\"}] } }"}
	r, b := half(t, s, nil)
	in, out, err := b.Interface(t.Context(), 0)
	if err != nil || len(in) != 1 || in[0].DType != tensor.FP32 || in[0].Shape[1] != 2 || len(out) != 2 ||
		out[0].DType != tensor.Bytes || out[0].Shape != nil {
		t.Errorf("%+v %+v %v", in, out, err)
	}
	batch := &dataplane.Batch{Items: 2, Portions: []dataplane.Portion{pair(1, 2), pair(3, 0.4)}}
	if err := r.Run(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if want := `{"inputs":{"x":[[1,2],[3,0.4]]}}`; s.asked[0] != want {
		t.Errorf("asked %s, want %s", s.asked[0], want)
	}
	for k := range batch.Portions {
		got := batch.Portions[k].Outputs
		at := 0
		if got[0].Name != "y" {
			at = 1
		}
		y, label := got[at], got[1-at]
		want := [][]byte{floats(0.5, 1), floats(float32(math.NaN()), 0.2)}[k]
		if y.Name != "y" || string(y.Data) != string(want) ||
			string(label.Data) != string(tensor.AppendBytes(nil, [][]byte{[]byte("a"), {0xff}}[k])) {
			t.Errorf("part %d: %+v", k, got)
		}
	}
	for _, c := range []struct {
		status       int
		answer, says string
		lost         bool
	}{
		{400, `{ "error": "wrong shape" }`, "wrong shape", false},
		{503, `no room`, "no room", true},
		{200, `{"outputs": {"y": [[1, 2]], "label": ["a"]}}`, "rows", false},
		{200, `{"outputs": {"z": [[1, 2]]}}`, `"z"`, false},
		{200, `{"predictions": 1}`, "predictions", false},
		{200, `{`, "JSON", false},
	} {
		s.status, s.answer = c.status, c.answer
		err := r.Run(t.Context(), &dataplane.Batch{Items: 2, Portions: []dataplane.Portion{pair(1, 2), pair(3, 4)}})
		if err == nil || !strings.Contains(errors.Unwrap(err).Error(), c.says) ||
			errors.Is(err, dataplane.ErrInstanceLost) != c.lost {
			t.Errorf("%d %s: %v (lost: %v), want an error with %q", c.status, c.answer, errors.Unwrap(err),
				errors.Is(err, dataplane.ErrInstanceLost), c.says)
		}
	}
}

// A server that says nothing of its models, such as KServe's, needs their outputs from elsewhere. Such servers answer
// by rows.
func TestOutputsOfV1FromElsewhere(t *testing.T) {
	s := &tensorFlow{answer: `{"predictions": [[0.5, 1]]}`}
	r, _ := half(t, s, []tensor.Spec{{Name: "y", DType: tensor.FP32, Shape: []int64{-1, 2}}})
	batch := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{pair(1, 2)}}
	if err := r.Run(t.Context(), batch); err != nil ||
		string(batch.Portions[0].Outputs[0].Data) != string(floats(0.5, 1)) {
		t.Errorf("%+v %v", batch.Portions[0].Outputs, err)
	}
	r, _ = half(t, s, nil)
	if err := r.Run(t.Context(), batch); err == nil ||
		!strings.Contains(errors.Unwrap(err).Error(), "outputs of the app") {
		t.Errorf("unknown outputs: %v", err)
	}
}
