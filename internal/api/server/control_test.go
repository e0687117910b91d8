package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

const token = "0123456789abcdef"

// Loading, unloading and changing settings needs the token also of callers on this machine, where proxies are.
func TestModelControlNeedsTheToken(t *testing.T) {
	for _, x := range []struct {
		name   string
		config server.Config
		shown  string // Authorization
		want   int
	}{
		{"no token configured, none shown", server.Config{}, "", 401},
		{"no token configured, an empty one shown", server.Config{}, "Bearer ", 401},
		{"none shown", server.Config{Token: token}, "", 401},
		{"a wrong one", server.Config{Token: token}, "Bearer 0123456789abcdeF", 401},
		{"the token", server.Config{Token: token}, "Bearer " + token, 200},
		{"everybody may", server.Config{ModelControl: true}, "", 200},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := start(t, x.config)
			var header []string
			ctx := t.Context()
			if x.shown != "" {
				header = []string{"Authorization", x.shown}
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", x.shown)
			}
			grpcWant := codes.Unauthenticated
			if x.want == 200 {
				grpcWant = codes.OK
			}
			for _, verb := range []string{"unload", "load"} {
				code, _, body := s.do(t, "POST", "/v2/repository/models/digits%2Fv1/"+verb, "{}", header...)
				if code != x.want || code == 401 && !strings.Contains(body, "admin_token") {
					t.Errorf("%s over HTTP: %d %s, want %d", verb, code, body, x.want)
				}
			}
			for path, body := range map[string]string{
				"/v2/logging": `{"log_info":true}`, "/v2/trace/setting": `{"trace_rate":"5"}`,
				model + "/trace/setting": `{"trace_rate":null}`,
			} {
				if code, _, got := s.do(t, "POST", path, body, header...); code != x.want {
					t.Errorf("%s: %d %s, want %d", path, code, got, x.want)
				}
				for _, method := range []string{"GET", "POST"} {
					if code, _, got := s.do(t, method, path, ""); code != 200 {
						t.Errorf("%s %s that changes nothing: %d %s", method, path, code, got)
					}
				}
			}
			no := &pb.LogSettingsRequest_SettingValue{
				ParameterChoice: &pb.LogSettingsRequest_SettingValue_BoolParam{},
			}
			_, err := s.client(t).LogSettings(ctx, &pb.LogSettingsRequest{
				Settings: map[string]*pb.LogSettingsRequest_SettingValue{"log_info": no},
			})
			if status.Code(err) != grpcWant {
				t.Errorf("log settings over gRPC: %v, want %v", err, grpcWant)
			}
			_, err = s.client(t).TraceSetting(ctx, &pb.TraceSettingRequest{
				Settings: map[string]*pb.TraceSettingRequest_SettingValue{"trace_rate": {Value: []string{"5"}}},
			})
			if status.Code(err) != grpcWant {
				t.Errorf("trace settings over gRPC: %v, want %v", err, grpcWant)
			}
			if _, err := s.client(t).LogSettings(t.Context(), &pb.LogSettingsRequest{}); err != nil {
				t.Errorf("log settings that change nothing: %v", err)
			}
			_, err = s.client(t).RepositoryModelUnload(ctx, &pb.RepositoryModelUnloadRequest{ModelName: "digits/v1"})
			if status.Code(err) != grpcWant {
				t.Errorf("unload over gRPC: %v, want %v", err, grpcWant)
			}
			_, err = s.client(t).RepositoryModelLoad(ctx, &pb.RepositoryModelLoadRequest{ModelName: "digits/v1"})
			if status.Code(err) != grpcWant {
				t.Errorf("load over gRPC: %v, want %v", err, grpcWant)
			}
		})
	}
}

// A page of another site cannot have a browser change anything or infer, nor can a site whose name resolves to this
// machine, which cannot read either. A page of an allowed origin infers and may do no more.
func TestChangesAreMeantForThisServer(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	s := start(t, server.Config{
		ModelControl: true, Hosts: []string{"sluice.example"}, SharedMemory: "/",
		AdminHandlers: map[string]http.Handler{"/prices": ok}, Origins: []string{"http://allowed.example"},
	})
	for _, x := range []struct {
		host, origin string
		want         int
	}{
		{"", "", 200},
		{"localhost:1", "", 200},
		{"[::1]:1", "", 200},
		{"sluice.example:8000", "", 200},
		{"SLUICE.example.", "", 200},
		{"evil.example", "", 403},
		{"evil.example", "http://evil.example", 403},
		{"localhost.evil.example", "", 403},
		{"localhost:8000", "http://localhost:8000", 200},
		{"localhost:8000", "http://evil.example", 403},
		{"localhost:8000", "null", 403},
		{"localhost:8000", "http://allowed.example", 403},
	} {
		for what, r := range map[string]*http.Request{
			"unload": request(t, "POST", "http://"+s.HTTPAddr()+"/v2/repository/models/digits%2Fv1/unload", "{}"),
			"region": request(t, "POST", "http://"+s.HTTPAddr()+"/v2/systemsharedmemory/unregister", ""),
			"log":    request(t, "POST", "http://"+s.HTTPAddr()+"/v2/logging", `{"log_info":true}`),
			"trace":  request(t, "POST", "http://"+s.HTTPAddr()+"/v2/trace/setting", `{"trace_rate":"5"}`),
			"price":  request(t, "PUT", "http://"+s.AdminAddr()+"/prices", "{}"),
			"index":  request(t, "POST", "http://"+s.HTTPAddr()+"/v2/repository/index", "{}"),
			"infer":  request(t, "POST", "http://"+s.HTTPAddr()+model+"/infer", two),
			"read":   request(t, "GET", "http://"+s.AdminAddr()+"/prices", ""),
			"model":  request(t, "GET", "http://"+s.HTTPAddr()+model, ""),
		} {
			want := x.want
			switch {
			case x.host == "evil.example" || x.host == "localhost.evil.example": // for nothing
			case what == "read", what == "model":
				want = 200
			case x.origin == "http://allowed.example" && (what == "index" || what == "infer"):
				want = 200
			}
			if x.host != "" {
				r.Host = x.host
			}
			if x.origin != "" {
				r.Header.Set("Origin", x.origin)
			}
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s of host %q from %q: %d, want %d", what, x.host, x.origin, resp.StatusCode, want)
			}
		}
	}
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Callers of the admin address load and unload models without server.model_control; where there is a token, with it.
func TestTheAdminAddressControlsModels(t *testing.T) {
	for _, x := range []struct {
		config server.Config
		header []string
		want   int
	}{
		{server.Config{}, nil, 200},
		{server.Config{Token: token}, nil, 401},
		{server.Config{Token: token}, []string{"Authorization", "Bearer " + token}, 200},
		{server.Config{}, []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		s := start(t, x.config)
		for _, path := range []string{"models/digits%2Fv1/unload", "models/digits%2Fv1/load"} {
			url := "http://" + s.AdminAddr() + "/v2/repository/" + path
			r, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if len(x.header) > 0 {
				r.Header.Set(x.header[0], x.header[1])
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != x.want {
				t.Errorf("%s with %v: %d, want %d", path, x.header, resp.StatusCode, x.want)
			}
		}
	}
}

// Proxies beside a server call it by the names that clients use: where the file allows every name, and in a pod. That
// is for queries alone.
func TestEveryNameIsForQueries(t *testing.T) {
	for _, x := range []struct {
		pod   string
		hosts []string
		want  int
	}{{"", nil, 403}, {"", []string{"*"}, 200}, {"10.0.0.1", nil, 200}} {
		t.Setenv("KUBERNETES_SERVICE_HOST", x.pod)
		ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
		s := start(t, server.Config{Hosts: x.hosts, AdminHandlers: map[string]http.Handler{"/prices": ok}})
		for url, want := range map[string]int{
			"http://" + s.HTTPAddr() + model: x.want, "http://" + s.AdminAddr() + "/prices": 403,
		} {
			r := request(t, "GET", url, "")
			r.Host = "models.example"
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("pod %q, hosts %q: %s answers %d, want %d", x.pod, x.hosts, url, resp.StatusCode, want)
			}
		}
	}
}
