package server

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/limits"
)

// frontOf returns the configuration of the front ends for these settings of server.
func frontOf(t *testing.T, settings string) server.Config {
	t.Helper()
	p, err := hosttest.Profiled(t, hosttest.Apps+settings).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&Server{planned: p, log: slog.New(slog.DiscardHandler)}).frontConfig(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A server whose configuration says nothing has the limits that are documented, each of them.
func TestLimitsOfASilentConfiguration(t *testing.T) {
	got := frontOf(t, "")
	if got.Memory < 1<<26 {
		t.Errorf("the budget is %d bytes", got.Memory)
	}
	want := server.Config{
		Memory: got.Memory, HTTP: ":8000", GRPC: ":8001", Admin: "127.0.0.1:8002", MaxRequest: limits.RequestBytes,
		Output:    limits.OutputBytes,
		MaxHeader: limits.HeaderBytes, Connections: limits.Connections, Streams: limits.Streams, Items: limits.Items,
		Message: oip.Bounds{
			Head: limits.HeadBytes, Tensors: limits.Tensors, Parameters: limits.Parameters, Elements: limits.Elements,
		},
		UnpackRatio: limits.UnpackRatio, ConnectionsEach: limits.Connections / 2, WriteTimeout: limits.WriteTimeout,
		StreamIdle: limits.StreamIdle, ConnectionAge: limits.ConnectionAge,
		ReadTimeout: limits.ReadTimeout, IdleTimeout: limits.IdleTimeout, DrainTimeout: limits.DrainTimeout,
		NotReady: limits.NotReady,
		Version:  host.Version(), Log: got.Log, Name: "sluice",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Whatever a configuration says of the server reaches it: every setting of the front ends can be set.
func TestEverySettingOfTheServerIsUsed(t *testing.T) {
	got := frontOf(t, `
server:
  http: 127.0.0.1:1
  grpc: 127.0.0.1:2
  admin: 0.0.0.0:3
  admin_anywhere: true
  admin_token: token
  model_control: true
  hosts: [sluice.example]
  shared_memory: /prefix
  origins: ["https://example.org"]
  name: triton
  not_ready: 5s
  public_metrics: true
  reflection: true
  drain_timeout: 6s
  limits: {request: 2MiB, memory: 3MiB, header: 3KiB, connections: 4, streams: 5, items: 6, read_timeout: 7s,
    idle_timeout: 8s, json: 9KiB, tensors: 10, parameters: 11, elements: 12, unpack_ratio: 13,
    connections_per_address: 14,
    write_timeout: 15s, stream_idle: 16s, connection_age: 17s, output: 18MiB}
telemetry: {traces: /traces}
`)
	want := server.Config{
		HTTP: "127.0.0.1:1", GRPC: "127.0.0.1:2", Admin: "0.0.0.0:3", AdminAnywhere: true, ModelControl: true,
		Hosts:    []string{"sluice.example"},
		NotReady: 5 * time.Second, DrainTimeout: 6 * time.Second, MaxRequest: 2 << 20, Memory: 3 << 20,
		MaxHeader: 3 << 10, Output: 18 << 20,
		Connections: 4, Streams: 5, Items: 6, ReadTimeout: 7 * time.Second, IdleTimeout: 8 * time.Second,
		Message: oip.Bounds{Head: 9 << 10, Tensors: 10, Parameters: 11, Elements: 12}, UnpackRatio: 13,
		ConnectionsEach: 14, WriteTimeout: 15 * time.Second, StreamIdle: 16 * time.Second,
		ConnectionAge: 17 * time.Second, SharedMemory: "/prefix", Traces: "/traces",
		Origins: []string{"https://example.org"},
		Name:    "triton", Version: host.Version(), Log: got.Log, PublicMetrics: true, Reflection: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	set := reflect.ValueOf(got)
	for i := range set.NumField() {
		name := set.Type().Field(i).Name
		if elsewhere := slices.Contains([]string{"TLS", "Certificate", "AdminTLS", "AdminHandlers", "AdminPage",
			"Hurry", "Net", "Token", "LogLevel", "Trouble", "Gate", "Audit", "AccessLog", "AccessEvery",
			"WrapHTTP", "Intercept", "Extensions", "Connected"}, name); !elsewhere && set.Field(i).IsZero() {
			t.Errorf("nothing in a sluice.yaml sets %s", name)
		}
	}
}

// The limits of pipelines and streams reach the data plane.
func TestLimitsOfTheDataPlane(t *testing.T) {
	p := hosttest.Profiled(t, hosttest.Fakes)
	l := &p.File().Server.Limits
	if l.Rows != limits.Rows || l.State != limits.StateBytes || l.AllStates != limits.AllStatesBytes ||
		l.Model != limits.ModelBytes {
		t.Errorf("%+v", l)
	}
}
