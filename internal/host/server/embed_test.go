package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/hosttest"
)

// TestEmbeddedServerAnswersWithoutASocket asks a server that listens nowhere.
func TestEmbeddedServerAnswersWithoutASocket(t *testing.T) {
	s := running(t, hosttest.Fakes, Options{HTTP: "off", GRPC: "off", Admin: "off"})
	body := `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v2/models/app/infer", strings.NewReader(body)))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"model_name":"app"`) {
		t.Errorf("HTTP answers %d %s", w.Code, w.Body)
	}
	in, err := proto.Marshal(&pb.ModelInferRequest{ModelName: "app",
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 4}}},
		RawInputContents: [][]byte{make([]byte, 16)}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Call(t.Context(), "ModelInfer", mem.BufferSlice{mem.SliceBuffer(in)})
	if err != nil {
		t.Fatal(err)
	}
	var answer pb.ModelInferResponse
	if err := proto.Unmarshal(out.Materialize(), &answer); err != nil || answer.ModelName != "app" {
		t.Errorf("gRPC answers %v, %v", &answer, err)
	}
	if _, err := s.Call(t.Context(), "Nothing", nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method gives %v", err)
	}
	if o := s.Overview(); o.Plan == nil || len(o.Apps) != 1 || o.Apps[0].Now.Served != 2 {
		t.Errorf("the overview is %+v", o)
	}
	w = httptest.NewRecorder()
	s.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "sluice_") {
		t.Errorf("metrics answer %d %.200s", w.Code, w.Body)
	}
}

// TestFirstPlanExpectsWhatWasSeen holds that a server that goes on plans for the rates it is told.
func TestFirstPlanExpectsWhatWasSeen(t *testing.T) {
	p := hosttest.Profiled(t, hosttest.Fakes)
	told := p.Expecting(map[string]float64{"app": 70, "another": 5})
	if d := told.Demand(); len(d) != 1 || d[0] != 70 {
		t.Errorf("the plan expects %v, want 70", d)
	}
	if d := p.Demand(); d[0] != 0 {
		t.Errorf("the original expects %v now", d)
	}
}
