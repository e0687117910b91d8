package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// tenanted is a server whose callers must show keys, and its keys by name.
type tenanted struct {
	*running
	key   map[string]string
	mu    sync.Mutex
	audit []access.Entry
}

func startTenanted(t *testing.T, tenants ...access.Tenant) *tenanted {
	t.Helper()
	return startTenantedWith(t, server.Config{}, tenants...)
}

func startTenantedWith(t *testing.T, c server.Config, tenants ...access.Tenant) *tenanted {
	t.Helper()
	x := &tenanted{key: make(map[string]string)}
	lines := ""
	for name, has := range map[string]struct {
		tenant string
		roles  access.Roles
	}{
		"viewer": {"", access.Look}, "shop": {"shop", access.Infer | access.Look}, "lab": {"lab", access.Infer},
		"deployer": {"", access.Deploy}, "operator": {"", access.All},
	} {
		key, line, err := access.NewKey(name, has.tenant, has.roles, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		x.key[name], lines = key, lines+line+"\n"
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := access.Keys(path, access.TenantNumber(tenants), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Gate = access.New(access.Config{Identifiers: []access.Identifier{keys}, Strict: true, Tenants: tenants})
	c.Audit = func(e *access.Entry) {
		x.mu.Lock()
		x.audit = append(x.audit, *e)
		x.mu.Unlock()
	}
	c.AdminHandlers = map[string]http.Handler{
		"/metrics": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		"/prices":  http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	x.running = start(t, c)
	return x
}

func (x *tenanted) as(name string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+x.key[name])
}

func inferMessage() *pb.ModelInferRequest {
	return &pb.ModelInferRequest{
		ModelName: "digits/v1", Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}},
		}, RawInputContents: [][]byte{make([]byte, 8)},
	}
}

var shops = []access.Tenant{{Name: "shop"}, {Name: "lab"}}

// Over every way in each role opens what it is for and nothing else.
func TestRoles(t *testing.T) {
	s := startTenanted(t, shops...)
	client := s.client(t)
	load := "/v2/repository/models/digits%2Fv1/load"
	for _, x := range []struct {
		what string
		do   func(who string) int
		may  string
	}{
		{"GET metadata", func(who string) int { return s.get(t, "GET", "/v2", "", who) }, "viewer shop operator"},
		{"POST infer", func(who string) int { return s.get(t, "POST", model+"/infer", two, who) }, "shop lab operator"},
		{"GET v1", func(who string) int { return s.get(t, "GET", modelV1, "", who) }, "viewer shop operator"},
		{"POST predict", func(who string) int {
			return s.get(t, "POST", modelV1+":predict", `{"instances":[[1,2]]}`, who)
		}, "shop lab operator"},
		{"POST load", func(who string) int { return s.get(t, "POST", load, "", who) }, "deployer operator"},
		{"POST logging", func(who string) int {
			return s.get(t, "POST", "/v2/logging", `{"log_verbose_level":0}`, who)
		}, "operator"},
		{"GET admin", func(who string) int { return s.admin(t, "GET", "/metrics", who) }, "viewer shop operator"},
		{"PUT admin", func(who string) int { return s.admin(t, "PUT", "/prices", who) }, "operator"},
		{"gRPC metadata", func(who string) int {
			_, err := client.ServerMetadata(s.as(who), &pb.ServerMetadataRequest{})
			return httpStatus(err)
		}, "viewer shop operator"},
		{"gRPC infer", func(who string) int {
			_, err := client.ModelInfer(s.as(who), inferMessage())
			return httpStatus(err)
		}, "shop lab operator"},
		{"gRPC load", func(who string) int {
			_, err := client.RepositoryModelLoad(s.as(who), &pb.RepositoryModelLoadRequest{ModelName: "digits/v1"})
			return httpStatus(err)
		}, "deployer operator"},
		{"gRPC settings", func(who string) int {
			_, err := client.LogSettings(s.as(who), &pb.LogSettingsRequest{
				Settings: map[string]*pb.LogSettingsRequest_SettingValue{"log_verbose_level": {
					ParameterChoice: &pb.LogSettingsRequest_SettingValue_Uint32Param{},
				}},
			})
			return httpStatus(err)
		}, "operator"},
		{"gRPC stream", func(who string) int {
			stream, err := client.ModelStreamInfer(s.as(who))
			if err == nil {
				_ = stream.Send(inferMessage())
				_ = stream.CloseSend()
				_, err = stream.Recv()
			}
			return httpStatus(err)
		}, "shop lab operator"},
	} {
		for _, who := range []string{"viewer", "shop", "lab", "deployer", "operator", "stranger"} {
			want := 403
			if strings.Contains(" "+x.may+" ", " "+who+" ") {
				want = 200
			} else if who == "stranger" {
				want = 401
			}
			if got := x.do(who); got != want {
				t.Errorf("%s as %s: %d, want %d", x.what, who, got, want)
			}
		}
	}
	for _, path := range []string{"/", "/v2/health/ready"} {
		if got := s.get(t, "GET", path, "", "stranger"); got != 200 {
			t.Errorf("%s asks for a key: %d", path, got)
		}
	}
}

func (x *tenanted) get(t *testing.T, method, path, body, who string) int {
	t.Helper()
	status, _, _ := x.do(t, method, path, body, "Authorization", "Bearer "+x.key[who])
	return status
}

func (x *tenanted) admin(t *testing.T, method, path, who string) int {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+x.AdminAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", x.key[who])
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// httpStatus is the status over HTTP that stands for an error over gRPC.
func httpStatus(err error) int {
	switch status.Code(err) {
	case codes.OK:
		return 200
	case codes.Unauthenticated:
		return 401
	case codes.PermissionDenied:
		return 403
	case codes.ResourceExhausted:
		return 429
	}
	return 500
}

// Queries carry their tenant, within its caps, and its name is part of their streams.
func TestTenantsCaps(t *testing.T) {
	s := startTenanted(t, access.Tenant{Name: "shop", MaxTimeout: time.Second, Priority: 3, SequenceRate: 5},
		access.Tenant{Name: "lab"})
	ask := func(parameters string) string {
		return strings.Replace(two, `"id":"a"`, `"parameters":{`+parameters+`}`, 1)
	}
	greedy := ask(`"timeout":3600000000,"priority":1,"sequence_id":7,"sequence_rate":1000`)
	if got := s.get(t, "POST", model+"/infer", greedy, "shop"); got != 200 {
		t.Fatal(got)
	}
	q := s.p.last
	if q.Tenant != 1 || q.Timeout != time.Second || q.Priority != 3 || q.Rate != 5 || q.Stream != "7" {
		t.Errorf("the query of shop: %+v", q)
	}
	shops := q.StreamName()
	s.get(t, "POST", model+"/infer", greedy, "lab")
	if q = s.p.last; q.Tenant != 2 || q.Timeout != time.Hour || q.Priority != 0 || q.StreamName() == shops {
		t.Errorf("the query of lab: %+v", q)
	}
	s.get(t, "POST", model+"/infer", greedy, "operator")
	if q = s.p.last; q.Tenant != 0 || q.Priority != 1 || q.StreamName() != "7" {
		t.Errorf("the query without a tenant: %+v", q)
	}
	s.get(t, "POST", model+"/infer", ask(`"priority":9`), "shop")
	if q = s.p.last; q.Priority != 9 || q.Timeout != 0 {
		t.Errorf("the modest query of shop: %+v", q)
	}
}

// A tenant beyond its quota reads 429 and when to come again; the others go on. Every answer says what is left.
func TestQuotas(t *testing.T) {
	s := startTenanted(t, access.Tenant{Name: "shop", Rate: 0.01, Burst: 3}, access.Tenant{Name: "lab", Concurrency: 1})
	header := []string{"Authorization", "Bearer " + s.key["shop"]}
	status, h, _ := s.do(t, "POST", model+"/infer", two, header...)
	if status != 200 || h.Get("RateLimit-Limit") != "3" || h.Get("RateLimit-Remaining") != "2" ||
		h.Get("RateLimit-Reset") != "100" {
		t.Errorf("%d %v", status, h)
	}
	client := s.client(t)
	var md, trailer metadata.MD
	if _, err := client.ModelInfer(s.as("shop"), inferMessage(), grpc.Header(&md)); err != nil ||
		fmt.Sprint(md["ratelimit-remaining"]) != "[1]" {
		t.Errorf("%v %v", err, md)
	}
	s.get(t, "POST", model+"/infer", two, "shop")
	status, h, body := s.do(t, "POST", model+"/infer", two, header...)
	if status != 429 || h.Get("Retry-After") != "100" && h.Get("Retry-After") != "101" ||
		!strings.Contains(body, "tenant shop") {
		t.Errorf("%d %v %s", status, h, body)
	}
	_, err := client.ModelInfer(s.as("shop"), inferMessage(), grpc.Trailer(&trailer))
	if httpStatus(err) != 429 || len(trailer["retry-after-ms"]) != 1 {
		t.Errorf("%v %v", err, trailer)
	}
	stream, err := client.ModelStreamInfer(s.as("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(inferMessage()); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || !strings.Contains(r.GetErrorMessage(), "tenant shop") {
		t.Errorf("on a stream: %v %v", r, err)
	}
	_ = stream.CloseSend()
	if got := s.get(t, "POST", model+"/infer", two, "lab"); got != 200 {
		t.Errorf("another tenant reads %d", got)
	}
}

// A tenant beyond its work reads 429 and when to come again, over HTTP and gRPC.
func TestWorkQuota(t *testing.T) {
	s := startTenanted(t, access.Tenant{Name: "shop", Work: 1e-3}, access.Tenant{Name: "lab"})
	header := []string{"Authorization", "Bearer " + s.key["shop"]}
	if status, _, body := s.do(t, "POST", model+"/infer", two, header...); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	status, h, body := s.do(t, "POST", model+"/infer", two, header...)
	if status != 429 || h.Get("Retry-After") == "" || !strings.Contains(body, "items times length") {
		t.Errorf("%d %v %s", status, h, body)
	}
	var trailer metadata.MD
	if _, err := s.client(t).ModelInfer(s.as("shop"), inferMessage(), grpc.Trailer(&trailer)); httpStatus(err) != 429 ||
		len(trailer["retry-after-ms"]) != 1 {
		t.Errorf("%v %v", err, trailer)
	}
	if got := s.get(t, "POST", model+"/infer", two, "lab"); got != 200 {
		t.Errorf("another tenant reads %d", got)
	}
}

// What changes something is written down with who did it and how it ended, and no secret is.
func TestAudit(t *testing.T) {
	s := startTenanted(t, shops...)
	client := s.client(t)
	s.get(t, "GET", "/v2", "", "operator")
	s.get(t, "POST", model+"/infer", two, "shop")
	s.get(t, "POST", "/v2/repository/models/digits%2Fv1/unload?token=hidden", "", "deployer")
	s.get(t, "POST", "/v2/repository/models/digits%2Fv1/load", "", "shop")
	_, _ = client.RepositoryModelUnload(s.as("viewer"), &pb.RepositoryModelUnloadRequest{ModelName: "digits/v1"})
	_, _ = client.LogSettings(s.as("operator"), &pb.LogSettingsRequest{}) // asks only
	s.admin(t, "PUT", "/prices", "operator")
	s.admin(t, "PUT", "/prices", "stranger")
	want := []string{
		"deployer POST /v2/repository/models/digits/v1/unload 200",
		"shop POST /v2/repository/models/digits/v1/load 403",
		"viewer RepositoryModelUnload PermissionDenied", "operator PUT /prices 200", "unknown PUT /prices 401",
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, e := range s.audit {
		got = append(got, fmt.Sprintf("%s %s %s", e.Who, e.What, e.Result))
		b, err := json.Marshal(e)
		if err != nil || e.From == "" || e.ID == "" || e.Time.IsZero() {
			t.Errorf("%s %v", b, err)
		}
		for _, key := range s.key {
			if strings.Contains(string(b), key) || strings.Contains(string(b), "hidden") {
				t.Errorf("%s holds a secret", b)
			}
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("written down:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.audit[2].Target != "digits/v1" {
		t.Errorf("%+v does not say which model", s.audit[2])
	}
}

// One in so many calls is in the access log, with an identifier that the caller reads as well.
func TestAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access")
	lines, err := access.OpenLines(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	s := start(t, server.Config{AccessLog: lines, AccessEvery: 2})
	_, first, _ := s.do(t, "GET", "/v2", "")
	_, second, _ := s.do(t, "GET", "/v2/models/no", "", "X-Request-Id", "mine")
	client := s.client(t)
	for range 2 {
		if _, err := client.ModelInfer(t.Context(), inferMessage()); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var entries []access.Entry
	for line := range strings.Lines(string(b)) {
		var e access.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if len(entries) != 2 || entries[0].What != "GET /v2/models/no" || entries[0].ID != "mine" ||
		entries[0].Result != "404" || entries[0].Bytes == 0 || entries[1].What != "ModelInfer" ||
		entries[1].Result != "OK" || first.Get("X-Request-Id") != "" || second.Get("X-Request-Id") != "mine" {
		t.Errorf("%s", b)
	}
}

// Metrics and the description of gRPC services are not for everybody unless somebody says so.
func TestNotPublic(t *testing.T) {
	metrics := map[string]http.Handler{
		server.MetricsPath: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}
	for _, public := range []bool{false, true} {
		s := start(t, server.Config{AdminHandlers: metrics, PublicMetrics: public, Reflection: public})
		want, code := 404, codes.Unimplemented
		if public {
			want, code = 200, codes.OK
		}
		if got, _, _ := s.do(t, "GET", "/metrics", ""); got != want {
			t.Errorf("public %v: metrics answer %d", public, got)
		}
		stream, err := reflectionpb.NewServerReflectionClient(s.conn(t)).ServerReflectionInfo(t.Context())
		if err == nil {
			_ = stream.Send(&reflectionpb.ServerReflectionRequest{
				MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
			})
			_ = stream.CloseSend()
			_, err = stream.Recv()
		}
		if status.Code(err) != code {
			t.Errorf("public %v: reflection answers %v", public, err)
		}
	}
}

// A request of more items than the server takes reads the key that sets it.
func TestTooManyItemsNameTheirKey(t *testing.T) {
	s := start(t, server.Config{Items: 2})
	code, _, body := s.do(t, "POST", model+"/infer",
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[3,2],"data":[1,2,3,4,5,6]}]}`)
	if code != http.StatusBadRequest || !strings.Contains(body, "has 3 items, at most 2 are taken in one request "+
		"(server.limits.items)") {
		t.Errorf("%d %s", code, body)
	}
}
