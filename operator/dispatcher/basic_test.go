package dispatcher_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestFleetAnswersEverywhere has two replicas serve three cells: every app is answered by both of them, over HTTP, gRPC
// and a stream, and what is asked of the fleet is answered for all of it.
func TestFleetAnswersEverywhere(t *testing.T) {
	f := newFleet(t, cluster.Start(t, cluster.Options{}))
	f.setCell(0, fakeCell(1, "a0"))
	f.setCell(1, fakeCell(1, "a1"))
	f.setCell(2, fakeCell(1, "a2", "b2"))
	f.start("d0", nil)
	f.start("d1", nil)
	f.served(3, 2, "a0", "a1", "a2", "b2")
	apps := []string{"a0", "a1", "a2", "b2"}
	for _, r := range f.live() {
		conn, err := grpc.NewClient("passthrough:///"+r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := pb.NewGRPCInferenceServiceClient(conn)
		for _, a := range apps {
			answer, err := c.ModelInfer(t.Context(), grpcQuestion(a))
			if err != nil || answer.ModelName != a || len(answer.RawOutputContents) != 1 {
				t.Errorf("%s answers for %s: %v, %v", r.name, a, answer, err)
			}
		}
		if _, err := c.ModelInfer(t.Context(), grpcQuestion("none")); status.Code(err) != codes.NotFound {
			t.Errorf("%s answers for an unknown app: %v", r.name, err)
		}
		stream, err := c.ModelStreamInfer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range apps {
			if err := stream.Send(grpcQuestion(a)); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for range apps {
			x, err := stream.Recv()
			if err != nil || x.ErrorMessage != "" {
				t.Fatalf("the stream of %s: %v %s", r.name, err, x.GetErrorMessage())
			}
			seen[x.InferResponse.ModelName] = true
		}
		if err := stream.CloseSend(); err != nil || len(seen) != len(apps) {
			t.Errorf("the stream of %s answered for %v, %v", r.name, seen, err)
		}
		index, err := c.RepositoryIndex(t.Context(), &pb.RepositoryIndexRequest{})
		if err != nil || len(index.Models) != len(apps) {
			t.Errorf("%s lists %v, %v", r.name, index, err)
		}
		stats, err := c.ModelStatistics(t.Context(), &pb.ModelStatisticsRequest{})
		if err != nil || len(stats.ModelStats) != len(apps) {
			t.Errorf("%s has statistics of %d models, %v", r.name, len(stats.GetModelStats()), err)
		}
		h, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "a0"})
		if err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%s says of the health of a0: %v, %v", r.name, h, err)
		}
		if m, err := c.ServerMetadata(t.Context(), &pb.ServerMetadataRequest{}); err != nil || m.Name != "sluice" {
			t.Errorf("%s describes itself as %v, %v", r.name, m, err)
		}
		checkHTTP(t, r, apps)
	}
}

// checkHTTP asks what is not inference over HTTP.
func checkHTTP(t *testing.T, r *replica, apps []string) {
	t.Helper()
	for path, want := range map[string]int{
		"/v2": 200, "/v2/health/live": 200, "/v2/health/ready": 200, "/v2/models/a2": 200, "/v2/models/a1/ready": 200,
		"/v2/models/none": 404, "/v2/systemsharedmemory/status": 404, "/v2/models/stats": 200,
		"/v2/models/b2/stats": 200,
	} {
		a, err := quick.Get("http://" + r.http + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("%s answers %s with %d, want %d", r.name, path, a.StatusCode, want)
		}
	}
	a, err := quick.Post("http://"+r.http+"/v2/repository/index", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var list []struct{ Name, State string }
	if err := json.NewDecoder(a.Body).Decode(&list); err != nil || a.StatusCode != http.StatusOK ||
		len(list) != len(apps) {
		t.Errorf("%s lists %v: %d, %v", r.name, list, a.StatusCode, err)
	}
	for _, x := range list {
		if x.State != "READY" {
			t.Errorf("%s says that %s is %s", r.name, x.Name, x.State)
		}
	}
}

func grpcQuestion(app string) *pb.ModelInferRequest {
	return &pb.ModelInferRequest{ModelName: app,
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 4}}},
		RawInputContents: [][]byte{make([]byte, 16)}}
}
