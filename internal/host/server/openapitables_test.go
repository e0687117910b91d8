package server

import (
	"reflect"

	"github.com/sluice-serving/sluice/internal/api/dashboard"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/schema"
)

// What the protocol's own documents say of its messages; sluice reads and writes them without structs like these.
type (
	live struct {
		Live bool `json:"live"`
	}
	ready struct {
		Ready bool   `json:"ready"`
		Error string `json:"error,omitempty"`
	}
	serverMetadata struct {
		Name       string   `json:"name"`
		Version    string   `json:"version"`
		Extensions []string `json:"extensions"`
	}
	tensorMetadata struct {
		Name     string  `json:"name"`
		Datatype string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	modelMetadata struct {
		Name     string           `json:"name"`
		Versions []string         `json:"versions"`
		Platform string           `json:"platform"`
		Inputs   []tensorMetadata `json:"inputs"`
		Outputs  []tensorMetadata `json:"outputs"`
	}
	tensorData struct {
		Name       string         `json:"name"`
		Datatype   string         `json:"datatype"`
		Shape      []int64        `json:"shape"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Data       []any          `json:"data,omitempty"`
	}
	wantedOutput struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters,omitempty"`
	}
	inferRequest struct {
		ID         string         `json:"id,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Inputs     []tensorData   `json:"inputs"`
		Outputs    []wantedOutput `json:"outputs,omitempty"`
	}
	inferAnswer struct {
		Model      string         `json:"model_name"`
		Version    string         `json:"model_version,omitempty"`
		ID         string         `json:"id,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Outputs    []tensorData   `json:"outputs"`
	}
	durationStatistics struct {
		Count uint64 `json:"count"`
		NS    uint64 `json:"ns"`
	}
	modelStatistics struct {
		Name           string                        `json:"name"`
		Version        string                        `json:"version"`
		LastInference  int64                         `json:"last_inference"`
		InferenceCount uint64                        `json:"inference_count"`
		ExecutionCount uint64                        `json:"execution_count"`
		InferenceStats map[string]durationStatistics `json:"inference_stats"`
		BatchStats     []map[string]any              `json:"batch_stats"`
	}
	statistics struct {
		Models []modelStatistics `json:"model_stats"`
	}
	indexRequest struct {
		Ready bool `json:"ready,omitempty"`
	}
	indexEntry struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		State   string `json:"state,omitempty"`
		Reason  string `json:"reason,omitempty"`
	}
	controlRequest struct {
		Parameters map[string]any `json:"parameters,omitempty"`
	}
	regionRequest struct {
		Key      string `json:"key"`
		Offset   uint64 `json:"offset,omitempty"`
		ByteSize uint64 `json:"byte_size"`
	}
	region struct {
		Name     string `json:"name"`
		Key      string `json:"key"`
		Offset   int64  `json:"offset"`
		ByteSize int64  `json:"byte_size"`
	}
	predictRequest struct {
		Signature  string         `json:"signature_name,omitempty"`
		Instances  []any          `json:"instances,omitempty"`
		Inputs     any            `json:"inputs,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
	}
	predictAnswer struct {
		Predictions []any `json:"predictions,omitempty"`
		Outputs     any   `json:"outputs,omitempty"`
	}
	versionStatus struct {
		Version string `json:"version"`
		State   string `json:"state"`
		Status  struct {
			Code string `json:"error_code"`
			Text string `json:"error_message"`
		} `json:"status"`
	}
	modelStatus struct {
		Name     string          `json:"name"`
		Ready    bool            `json:"ready"`
		Versions []versionStatus `json:"model_version_status"`
	}
	modelNames struct {
		Models []string `json:"models"`
	}
	logSettings struct {
		File    string `json:"log_file"`
		Info    bool   `json:"log_info"`
		Warning bool   `json:"log_warning"`
		Error   bool   `json:"log_error"`
		Verbose int    `json:"log_verbose_level"`
		Format  string `json:"log_format"`
	}
	none struct{}
)

// of is the type of a body.
func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

const someInput = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`

// publicDocument is what the HTTP address answers.
func publicDocument(m *schema.Maker) *document {
	ok := func(body any) map[int]any { return map[int]any{200: body} }
	d := &document{
		file: "../../../docs/openapi/serving.json", title: "sluice: serving", server: "http://localhost:8000",
		about: "The Open Inference Protocol v2 with Triton's extensions, and the protocol v1 of TensorFlow Serving " +
			"and KServe, over HTTP. docs/protocol.md says what parameters and errors mean, and has the binary form.",
		pages: []string{"/v2/"}, // the same as /v2
	}
	add := func(list ...operation) { d.operations = append(d.operations, list...) }
	add(
		operation{method: "GET", path: "/v2", about: "The server", answers: ok(of[serverMetadata]()), ask: "/v2"},
		operation{method: "GET", path: "/", about: "Whether the server is alive, as KServe answers",
			answers: ok(object(m, map[string]reflect.Type{"status": of[string]()})), ask: "/"},
		operation{method: "GET", path: "/v2/health/live", about: "Whether the server is alive", answers: ok(of[live]()),
			ask: "/v2/health/live"},
		operation{method: "GET", path: "/v2/health/ready", about: "Whether the server takes queries",
			answers: map[int]any{200: of[ready](), 503: of[ready]()}, ask: "/v2/health/ready"},
		operation{method: "GET", path: "/v2/models/stats", about: "Counters of all models",
			answers: ok(of[statistics]()),
			ask:     "/v2/models/stats"},
		operation{method: "GET", path: "/metrics", about: "Metrics, where server.public_metrics is set",
			answers: ok("text/plain"), ask: "/metrics"},
		operation{method: "POST", path: "/v2/repository/index", about: "The models of the repository",
			body: of[indexRequest](), answers: ok(of[[]indexEntry]()), ask: "/v2/repository/index",
			sent: `{"ready":true}`},
		operation{method: "POST", path: "/v2/repository/models/{model}/load", about: "Load a model",
			body: of[controlRequest](), answers: ok(of[none]()), ask: "/v2/repository/models/app/load", sent: `{}`,
			status: 401},
		operation{method: "POST", path: "/v2/repository/models/{model}/unload", about: "Unload a model",
			body: of[controlRequest](), answers: ok(of[none]()), ask: "/v2/repository/models/app/unload", sent: `{}`,
			status: 401},
	)
	for _, at := range []struct{ path, ask string }{
		{"/v2/models/{model}", "/v2/models/app"},
		{"/v2/models/{model}/versions/{version}", "/v2/models/app/versions/big"},
	} {
		add(
			operation{method: "GET", path: at.path, about: "A model's inputs and outputs",
				answers: ok(of[modelMetadata]()),
				ask:     at.ask},
			operation{method: "GET", path: at.path + "/ready", about: "Whether a model can answer now",
				answers: map[int]any{200: of[ready](), 503: of[ready]()}, ask: at.ask + "/ready"},
			operation{method: "GET", path: at.path + "/config", about: "A model's configuration, as of Triton",
				answers: ok(object(m, map[string]reflect.Type{"name": of[string]()})), ask: at.ask + "/config"},
			operation{method: "GET", path: at.path + "/stats", about: "Counters of a model",
				answers: ok(of[statistics]()), ask: at.ask + "/stats"},
			operation{method: "POST", path: at.path + "/infer", about: "Ask a model", body: of[inferRequest](),
				answers: ok(of[inferAnswer]()), ask: at.ask + "/infer", sent: someInput},
			operation{method: "POST", path: at.path + "/generate", about: "Ask a model by an object of its inputs",
				body: schema.Schema{"type": "object"}, answers: ok(schema.Schema{"type": "object"}),
				ask: at.ask + "/generate", sent: `{"x":[1,2]}`},
			operation{method: "POST", path: at.path + "/generate_stream", about: "The same, answered by events",
				body: schema.Schema{"type": "object"}, answers: ok("text/event-stream"),
				ask: at.ask + "/generate_stream", sent: `{"x":[1,2]}`},
		)
	}
	addExtensions(add, ok)
	for _, at := range []struct{ path, ask string }{
		{"/v1/models/{model}", "/v1/models/app"},
		{"/v1/models/{model}/versions/{version}", "/v1/models/app/versions/big"},
	} {
		add(
			operation{method: "GET", path: at.path, about: "Whether a model can answer now, and its versions",
				answers: map[int]any{200: of[modelStatus](), 503: of[modelStatus]()}, ask: at.ask},
			operation{method: "GET", path: at.path + "/metadata", about: "What a model takes and gives",
				answers: ok(of[oip.V1Metadata]()), ask: at.ask + "/metadata"},
			operation{method: "POST", path: at.path + ":predict", about: "Ask a model by rows or columns",
				body: of[predictRequest](), answers: ok(of[predictAnswer]()), ask: at.ask + ":predict",
				sent: `{"instances":[[1,2]]}`, also: []string{"GET"}},
		)
	}
	add(operation{method: "GET", path: "/v1/models", about: "The names of the models", answers: ok(of[modelNames]()),
		ask: "/v1/models"})
	return d
}

// addExtensions adds Triton's extensions for shared memory and settings.
func addExtensions(add func(...operation), ok func(any) map[int]any) {
	for _, kind := range []string{"system", "cuda"} {
		status, settled := 200, 200
		if kind == "cuda" {
			settled = 501
		}
		base := "/v2/" + kind + "sharedmemory"
		for _, at := range []struct{ path, ask string }{{"", ""}, {"/region/{region}", "/region/r"}} {
			if at.path != "" && kind == "system" {
				status = 404
			}
			add(
				operation{method: "GET", path: base + at.path + "/status", about: "Regions of shared memory",
					answers: ok(of[[]region]()), ask: base + at.ask + "/status", status: status},
				operation{method: "POST", path: base + at.path + "/unregister", about: "Forget regions",
					answers: ok(of[none]()), ask: base + at.ask + "/unregister"},
			)
		}
		if kind == "system" {
			settled = 400
		}
		add(operation{method: "POST", path: base + "/region/{region}/register", about: "Name a region",
			body: of[regionRequest](), answers: ok(of[none]()), ask: base + "/region/r/register",
			sent: `{"key":"/no-such-object","byte_size":8}`, status: settled})
	}
	text := schema.Schema{"type": []any{"string", "array", "null"}, "items": schema.Schema{"type": "string"}}
	traces := schema.Schema{"type": "object", "additionalProperties": text}
	for _, at := range []struct{ path, ask string }{
		{"/v2/trace/setting", "/v2/trace/setting"}, {"/v2/models/{model}/trace/setting",
			"/v2/models/app/trace/setting"},
	} {
		add(
			operation{method: "GET", path: at.path, about: "Settings of traces", answers: ok(traces), ask: at.ask},
			operation{method: "POST", path: at.path, about: "Change settings of traces", body: traces,
				answers: ok(traces), ask: at.ask, sent: `{}`},
		)
	}
	add(
		operation{method: "GET", path: "/v2/logging", about: "Settings of the log", answers: ok(of[logSettings]()),
			ask: "/v2/logging"},
		operation{method: "POST", path: "/v2/logging", about: "Change settings of the log",
			body: schema.Schema{"type": "object"}, answers: ok(of[logSettings]()), ask: "/v2/logging", sent: `{}`},
	)
}

// adminDocument is what the admin address answers. sum is that of a model, and file its contents.
func adminDocument(m *schema.Maker, sum, file, token string) *document {
	ok := func(body any) map[int]any { return map[int]any{200: body} }
	version := func(more map[string]reflect.Type) schema.Schema {
		more["schema"] = of[int]()
		return object(m, more)
	}
	series := version(map[string]reflect.Type{
		"app": of[string](), "buckets": of[[]float64](), "series": of[*board.Series](),
	})
	missed := version(map[string]reflect.Type{"missed": of[[]board.Missed](), "answered": of[uint64]()})
	d := &document{
		file: "../../../docs/openapi/admin.json", title: "sluice: administration", server: "http://localhost:8002",
		token: token,
		about: "What the admin address answers: functions, prices, the model repository, decisions, and what the " +
			"page asks. docs/functions.md, docs/dashboard.md and docs/protocol.md say what it means and who may.",
		pages: []string{"/", "/docs/", dashboard.Prefix},
	}
	api := func(path, ask, about string, body any, query ...string) operation {
		return operation{method: "GET", path: dashboard.Prefix + path, about: about, answers: ok(body), query: query,
			ask: dashboard.Prefix + ask}
	}
	function, one := functions.PathFunctions+"{name}", functions.PathFunctions+"echo"
	d.operations = []operation{
		{method: "GET", path: "/metrics", about: "Metrics", answers: ok("text/plain"), ask: "/metrics"},
		{method: "GET", path: "/debug/decisions", about: "The latest decisions, a line each",
			query: []string{"limit", "follow"}, answers: ok("text/plain"), ask: "/debug/decisions"},
		{method: "GET", path: "/debug/explain", about: "The way of a query", query: []string{"query"},
			answers: ok(of[steps.Explanation]()), ask: "/debug/explain?query=1",
			header: []string{"Accept", "application/json"}},
		{method: "GET", path: "/prices", about: "What machines cost", answers: ok(of[[]server.Price]()),
			ask: "/prices"},
		{method: "PUT", path: "/prices", about: "Change what a machine costs", body: of[server.Price](),
			answers: ok(of[server.Price]()), ask: "/prices", sent: `{"device_type":"d","price_per_hour":2}`},
		{method: "POST", path: functions.PathReload, about: "Take up the apps of the changed configuration file",
			answers: ok(of[functions.Reloaded]()), ask: functions.PathReload, status: 501},
		{method: "POST", path: "/v2/repository/index", about: "The models of the repository", body: of[indexRequest](),
			answers: ok(of[[]indexEntry]()), ask: "/v2/repository/index", sent: `{}`},
		{method: "POST", path: "/v2/repository/models/{model}/load", about: "Load a model", body: of[controlRequest](),
			answers: ok(of[none]()), ask: "/v2/repository/models/other/load", sent: `{}`, status: 404},
		{method: "POST", path: "/v2/repository/models/{model}/unload", about: "Unload a model",
			body: of[controlRequest](), answers: ok(of[none]()), ask: "/v2/repository/models/other/unload", sent: `{}`,
			status: 404},

		{method: "PUT", path: functions.PathModels + "{sum}", about: "Send a model file",
			answers: ok(object(m, map[string]reflect.Type{"model_sha256": of[string]()})),
			ask:     functions.PathModels + sum, sent: file},
		{method: "HEAD", path: functions.PathModels + "{sum}", about: "Whether the server has a model",
			answers: ok(nil), ask: functions.PathModels + sum},
		{method: "PUT", path: function, about: "Deploy a function", body: of[functions.Deployment](),
			answers: map[int]any{200: of[functions.Status](), 202: of[functions.Status]()}, ask: one,
			sent: `{"model_sha256":"` + sum + `","latency_ms":5000,"percentile":99}`},
		{method: "GET", path: functions.PathFunctions, about: "All functions", answers: ok(of[[]functions.Status]()),
			ask: functions.PathFunctions},
		{method: "GET", path: function, about: "One function", answers: ok(of[functions.Status]()), ask: one},
		{method: "GET", path: function + "/logs", about: "The latest events of a function",
			query: []string{"after", "limit"}, answers: ok(of[[]functions.Event]()), ask: one + "/logs"},
		{method: "DELETE", path: function + "/deployment", about: "Cancel a deployment", answers: ok(of[none]()),
			ask: one + "/deployment", status: 404},
		{method: "DELETE", path: function, about: "Delete a function", answers: ok(of[none]()), ask: one},

		api("info", "info", "What is shown", of[dashboard.Info]()),
		api("overview", "overview", "All apps, now and over the hour", of[*board.Overview]()),
		api("machines", "machines", "Kinds, workers, and the state of each", of[*board.Machines]()),
		api("plans", "plans", "The latest plans", version(map[string]reflect.Type{"plans": of[[]board.PlanLine]()})),
		api("plans/{number}", "plans/1", "A plan", of[*board.PlanView]()),
		api("apps/{app}", "apps/app", "An app", of[*board.AppView]()),
		api("series", "series?app=app", "An app, or all, over time", series, "app", "from", "to", "step"),
		api("batches", "batches?workers=0", "What runs and ran on workers", of[*board.Recent](), "workers", "since"),
		api("queries", "queries", "The latest that missed their objective", missed, "app", "limit"),
		api("queries/{query}", "queries/1", "The way of a query", of[dashboard.QueryView]()),
		api("seconds", "seconds", "The latest seconds of all apps", of[*board.Second]()),
		api("setting", "setting", "What a question can change", of[dashboard.Setting]()),
		api("history", "history?app=app", "The latest day of an app", series, "app", "from", "to", "step"),
		api("stream", "stream", "Events", "text/event-stream", "topics"),
		{method: "POST", path: dashboard.Prefix + "what-if", about: "What would be otherwise",
			body:    of[whatIfRequest](),
			answers: ok(of[whatIfReply]()), ask: dashboard.Prefix + "what-if", sent: `{"span_s":600}`},
	}
	return d
}

// whatIfRequest is what the page asks.
type whatIfRequest struct {
	SpanS  float64           `json:"span_s,omitempty"`
	Change *questions.Change `json:"change,omitempty"`
	Plan   int               `json:"plan,omitempty"`
}

// whatIfReply is what the page is answered.
type whatIfReply struct {
	questions.WhatIfAnswer
	Was   map[string]board.Window `json:"was,omitempty"`
	TookS float64                 `json:"took_s"`
}
