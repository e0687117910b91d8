package server

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/tensor"
)

// post sends JSON and returns the status of the answer.
func post(t *testing.T, address, body string) int {
	t.Helper()
	status, _ := ask(t, http.MethodPost, address, body, "Content-Type", "application/json")
	return status
}

// A model that was unloaded is unavailable over both protocols until it is loaded again.
func TestUnloadedModelsAreUnavailable(t *testing.T) {
	open := strings.Replace(hosttest.Fakes, "server: {", "server: {model_control: true, ", 1)
	s := running(t, open, Options{Admin: "off"})
	const one = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}`
	infer, control := s.HTTPAddr()+"/v2/models/app/infer", s.HTTPAddr()+"/v2/repository/models/app/"
	conn, err := grpc.NewClient(s.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := post(t, control+"unload", ""); got != http.StatusOK {
		t.Fatalf("unload: %d", got)
	}
	if got := post(t, infer, one); got != http.StatusServiceUnavailable {
		t.Errorf("over HTTP: %d", got)
	}
	_, err = pb.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), oip.EncodeRequest("app", "", "",
		[]tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)}}, nil))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("over gRPC: %v", err)
	}
	if got := post(t, control+"load", ""); got != http.StatusOK {
		t.Fatalf("load: %d", got)
	}
	if got := post(t, infer, one); got != http.StatusOK {
		t.Errorf("loaded again: %d", got)
	}
}
