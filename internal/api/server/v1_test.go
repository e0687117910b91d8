package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

const modelV1 = "/v1/models/digits%2Fv1"

// The paths of the protocol v1, and what they answer where something is wrong.
func TestV1Paths(t *testing.T) {
	s := start(t, server.Config{MaxRequest: 1000})
	const available = `"status":{"error_code":"OK","error_message":""}}`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/", "", 200, `{"status":"alive"}`},
		{"GET", "/v1/models", "", 200, `{"models":["digits/v1"]}`},
		{"GET", modelV1, "", 200, `{"name":"digits/v1","ready":true,"model_version_status":[` +
			`{"version":"1","state":"AVAILABLE",` + available + `,{"version":"2","state":"AVAILABLE",` + available +
			`]}`},
		{"GET", modelV1 + "/versions/large", "", 200, `"model_version_status":[{"version":"2",`},
		{"GET", modelV1 + "/versions/9", "", 404, `{"error":"`},
		{"GET", "/v1/models/other", "", 404, `{"error":"Request for unknown model: 'other' is not found"}`},
		{
			"POST", modelV1 + ":predict", `{"instances":[[1,2],[3,4.5]]}`, 200,
			`{"predictions":[{"y":[1,2],"s":"é\u0000"},{"y":[3,4.5],"s":"é\u0000"}]}`,
		},
		{
			"POST", modelV1 + ":predict", `{"instances":[{"x":[1,2]}]}`, 200,
			`{"predictions":[{"y":[1,2],"s":"é\u0000"}]}`,
		},
		{
			"POST", modelV1 + ":predict", `{"signature_name":"serving_default","inputs":{"x":[[1,2]]}}`, 200,
			`{"outputs":{"y":[[1,2]],"s":["é\u0000"]}}`,
		},
		{"POST", modelV1 + "/versions/1:predict", `{"inputs":[[1,2]]}`, 200, `{"outputs":{"y":[[1,2]],`},
		{"POST", modelV1 + "/versions/9:predict", `{"inputs":[[1,2]]}`, 404, `{"error":"`},
		{"POST", "/v1/models/other:predict", `{"inputs":[[1,2]]}`, 404, `{"error":"`},
		{"POST", modelV1 + ":predict", `{"instances":[[1,2,3]]}`, 400, `model \"digits/v1\" takes [-1,2]`},
		{"POST", modelV1 + ":predict", `{"instances":[[1,2],[1,2],[1,2],[1,2],[1,2]]}`, 400, `takes at most 4 in one`},
		{"POST", modelV1 + ":predict", `{"inputs":{}}`, 400, `expected 1 inputs but got 0 inputs`},
		{"POST", modelV1 + ":predict", `{"instances":[{"z":1}]}`, 400, `\"z\" is no input of the model`},
		{"POST", modelV1 + ":predict", `{"instances":[` + strings.Repeat(" ", 1000) + `]}`, 413, `limits.request`},
		{"POST", modelV1 + ":explain", `{"instances":[[1,2]]}`, 501, `\"explain\" is not offered`},
		{"POST", modelV1 + "/versions/1:regress", `{}`, 501, `\"regress\" is not offered`},
		{"POST", modelV1, `{"instances":[[1,2]]}`, 405, `use GET here`},
		{"PUT", modelV1 + ":predict", `{"instances":[[1,2]]}`, 405, `use GET here`},
		{"GET", "/v1/other", ``, 404, `there is nothing at`},
	} {
		status, head, body := s.do(t, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %.60s: %d %s\nwant %d %s", c.method, c.path, c.body, status, body, c.status, c.want)
		}
		if got := head.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: %s", c.method, c.path, got)
		}
	}
	s.p.set(true)
	status, _, body := s.do(t, "GET", modelV1, "")
	if status != 503 || !strings.Contains(body, `"ready":false`) || !strings.Contains(body,
		`"state":"LOADING","status":{"error_code":"UNAVAILABLE","error_message":"not loaded"}`) {
		t.Errorf("not ready: %d %s", status, body)
	}
}

// Deadlines, parameters, versions and errors go the way of the protocol v2.
func TestV1Queries(t *testing.T) {
	s := start(t, server.Config{})
	status, _, _ := s.do(t, "POST", modelV1+"/versions/small:predict",
		`{"instances":[[1,2],[3,4]],"parameters":{"timeout":70000,"priority":1,"min_accuracy":0.5}}`,
		"Sluice-Timeout", "3s")
	if q := s.p.last; status != 200 || q.Items != 2 || q.Timeout != 70*time.Millisecond || q.Priority != 1 ||
		q.MinAccuracy != 0.5 || q.Variant != 0 || q.Within <= 0 || q.Within > 3*time.Second {
		t.Errorf("%d, the query %+v", status, s.p.last)
	}
	for _, c := range []struct {
		err    dataplane.Error
		status int
	}{
		{dataplane.Error{Outcome: serving.Refused, Full: true, RetryAfter: time.Second}, 503},
		{dataplane.Error{Outcome: serving.Dropped}, 504}, {dataplane.Error{Outcome: serving.Failed}, 500},
	} {
		s.p.infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error) { return nil, &c.err }
		status, head, body := s.do(t, "POST", modelV1+":predict", `{"instances":[[1,2]]}`)
		if status != c.status || !strings.HasPrefix(body, `{"error":"`) || (head.Get("Retry-After") != "") !=
			(c.status == 503) {
			t.Errorf("%v: %d %s %s", c.err, status, head, body)
		}
	}
	s.p.infer = nil
	status, head, _ := s.do(t, "POST", modelV1+":predict", `{"instances":[[1,2]]}`, "Accept-Encoding", "gzip")
	if status != http.StatusOK || head.Get("Content-Encoding") != "gzip" {
		t.Errorf("gzip: %d %s", status, head)
	}
	s.p.model.Inputs = nil
	if status, _, body := s.do(t, "POST", modelV1+":predict", `{"instances":[[1,2]]}`); status != 501 ||
		!strings.Contains(body, "datatypes of its inputs are not known") {
		t.Errorf("unknown inputs: %d %s", status, body)
	}
}
