package config

import (
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
)

// Defaults of settings, beside the limits of package internal/limits. docs/configuration.md repeats them in words.
const (
	defaultSystem     = "sluice" // of package systems, which this package may not import
	defaultLate       = "drop"
	defaultColdWait   = 30 * time.Second
	defaultPercentile = 99
	defaultMaxBatch   = 64
	defaultSample     = 0.01
	defaultRecord     = 256 << 20
)

// Defaults that other packages use.
const (
	// DefaultQueueLimit is how many queries of an app may wait.
	DefaultQueueLimit = 1000
	// DefaultHTTP is where HTTP is answered.
	DefaultHTTP = ":8000"
	// DefaultGRPC is where gRPC is answered.
	DefaultGRPC = ":8001"
	// DefaultName is the server's name in its metadata.
	DefaultName = "sluice"
	// DefaultPoll is how often a model repository is looked at.
	DefaultPoll = 15 * time.Second
	// DefaultAdmin is where metrics, decisions and administration are.
	DefaultAdmin = "127.0.0.1:8002"
)

// defaults sets missing values. A value in the file stays, even a wrong one.
func (f *File) defaults() {
	for i := range f.DeviceTypes {
		orInt(f, &f.DeviceTypes[i].Cores, 1, at("device_types", i)+".cores")
	}
	for i := range f.Workers {
		w, path := &f.Workers[i], at("workers", i)
		orInt(f, &w.Count, 1, path+".count")
		orText(f, &w.Backend.Kind, "onnx", path+".backend.kind")
		if machines := f.machines(); len(machines) == 1 {
			orText(f, &w.DeviceType, machines[0], path+".device_type")
		}
	}
	f.System.defaults()
	for i := range f.Apps {
		f.Apps[i].defaults(f, at("apps", i))
	}
	for i := range f.Placement {
		orInt(f, &f.Placement[i].Slots, 1, at("placement", i)+".slots")
		if len(f.Apps) == 1 {
			orText(f, &f.Placement[i].App, f.Apps[0].Name, at("placement", i)+".app")
		}
	}
	orText(f, &f.Models.Control, ControlNone, "models.control")
	orTime(f, &f.Models.Poll, DefaultPoll, "models.poll")
	orInt(f, &f.Models.Limit, limits.Models, "models.limit")
	s := &f.Server
	orText(f, &s.HTTP, DefaultHTTP, "server.http")
	orText(f, &s.GRPC, DefaultGRPC, "server.grpc")
	orText(f, &s.Admin, DefaultAdmin, "server.admin")
	orText(f, &s.Name, DefaultName, "server.name")
	orTime(f, &s.DrainTimeout, limits.DrainTimeout, "server.drain_timeout")
	orTime(f, &s.NotReady, limits.NotReady, "server.not_ready")
	if !f.has("server.tracing.sample") {
		s.Tracing.Sample = defaultSample
	}
	if !f.has("server.record.share") {
		s.Record.Share = defaultSample
	}
	orSize(f, &s.Record.Size, defaultRecord, "server.record.size")
	l := &s.Limits
	orSize(f, &l.Request, limits.RequestBytes, "server.limits.request")
	orSize(f, &l.Output, limits.OutputBytes, "server.limits.output")
	orSize(f, &l.Header, limits.HeaderBytes, "server.limits.header")
	orInt(f, &l.Connections, limits.Connections, "server.limits.connections")
	orInt(f, &l.ConnectionsPerAddress, (l.Connections+1)/2, "server.limits.connections_per_address")
	orInt(f, &l.Streams, limits.Streams, "server.limits.streams")
	orInt(f, &l.Items, limits.Items, "server.limits.items")
	orSize(f, &l.JSON, min(limits.HeadBytes, max(l.Request, 1<<10)), "server.limits.json")
	orInt(f, &l.Tensors, limits.Tensors, "server.limits.tensors")
	orInt(f, &l.Parameters, limits.Parameters, "server.limits.parameters")
	orInt(f, &l.Elements, limits.Elements, "server.limits.elements")
	orInt(f, &l.UnpackRatio, limits.UnpackRatio, "server.limits.unpack_ratio")
	orInt(f, &l.Rows, limits.Rows, "server.limits.rows")
	orSize(f, &l.State, limits.StateBytes, "server.limits.state")
	orSize(f, &l.AllStates, limits.AllStatesBytes, "server.limits.all_states")
	orSize(f, &l.Model, limits.ModelBytes, "server.limits.model")
	if f.Store != "" {
		orText(f, &s.AdminToken, filepath.Join(f.Store, "admin.token"), "server.admin_token")
	}
	orTime(f, &l.ReadTimeout, limits.ReadTimeout, "server.limits.read_timeout")
	orTime(f, &l.WriteTimeout, limits.WriteTimeout, "server.limits.write_timeout")
	orTime(f, &l.StreamIdle, limits.StreamIdle, "server.limits.stream_idle")
	orTime(f, &l.ConnectionAge, limits.ConnectionAge, "server.limits.connection_age")
	orTime(f, &l.IdleTimeout, limits.IdleTimeout, "server.limits.idle_timeout")
	for i := range f.Tenants {
		if x := &f.Tenants[i]; x.Weight == 0 && !f.has(at("tenants", i)+".weight") {
			x.Weight = 1
		}
	}
	orInt(f, &f.Access.LogEvery, 100, "access.log_every")
	orText(f, &f.Access.JWT.RolesClaim, "scope", "access.jwt.roles_claim")
	t := &f.Telemetry
	orText(f, &t.LogLevel, "info", "telemetry.log_level")
	orText(f, &t.LogFormat, "text", "telemetry.log_format")
	orInt(f, &t.Decisions, 65536, "telemetry.decisions")
	orInt(f, &t.MetricsApps, 500, "telemetry.metrics_apps")
	if !f.has("telemetry.journal_limit") {
		t.JournalLimit = 4 << 30
	}
	if t.LatencyBuckets == nil {
		for _, ms := range []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000} {
			t.LatencyBuckets = append(t.LatencyBuckets, Duration(ms*time.Millisecond))
		}
	}
}

func (s *System) defaults() {
	if s.Name == "" && s.Router == "" && s.Batcher == "" {
		s.Name = defaultSystem
	}
	if s.Late == "" {
		s.Late = defaultLate
	}
}

func (a *App) defaults(f *File, path string) {
	if a.System != nil && a.System.Late == "" {
		a.System.Late = f.System.Late
	}
	late := f.System.Late
	if a.System != nil {
		late = a.System.Late
	}
	if a.SLO.Proposed && !f.has("system.late") && !f.has(path+".system.late") {
		late = "serve-late" // an objective that nobody asked for gives no query up
	}
	orText(f, &a.Late, late, path+".late")
	if a.ColdWait == 0 && !f.has(path+".cold_wait") {
		a.ColdWait = Duration(defaultColdWait)
	}
	if a.Weight == 0 && !f.has(path+".weight") {
		a.Weight = 1
	}
	if a.SLO.Percentile == 0 && !f.has(path+".slo.percentile") {
		a.SLO.Percentile = defaultPercentile
	}
	orInt(f, &a.QueueLimit, DefaultQueueLimit, path+".queue_limit")
	for _, s := range f.stages(a, path) {
		if s.Function != "" {
			continue
		}
		for i := range s.Variants {
			v, p := &s.Variants[i], at(s.path+".variants", i)
			if v.Python != "" {
				orText(f, &v.Name, pythonName(v.Python), p+".name")
			} else {
				orText(f, &v.Name, v.Model, p+".name")
				orText(f, &v.Model, v.Name, p+".model")
			}
			if len(s.Variants) == 1 && !f.has(p+".accuracy") && v.Accuracy == 0 {
				v.Accuracy = 1
			}
		}
	}
	for i := range a.Stages {
		if !f.has(at(path+".stages", i) + ".stateful") {
			a.Stages[i].Stateful = ops.Stateful(a.Stages[i].Function)
		}
		for j := range a.Stages[i].Next {
			e := &a.Stages[i].Next[j]
			if e.FanOut == 0 && !f.has(at(at(path+".stages", i)+".next", j)+".fan_out") {
				e.FanOut = 1
			}
		}
	}
}

func orInt(f *File, v *int, d int, path string) {
	if *v == 0 && !f.has(path) {
		*v = d
	}
}

func orText(f *File, v *string, d, path string) {
	if *v == "" && !f.has(path) {
		*v = d
	}
}

func orSize(f *File, v *Size, d Size, path string) {
	if *v == 0 && !f.has(path) {
		*v = d
	}
}

func orTime(f *File, v *Duration, d time.Duration, path string) {
	if *v == 0 && !f.has(path) {
		*v = Duration(d)
	}
}

// machines are the names of the device types that are not parts.
func (f *File) machines() (out []string) {
	for _, d := range f.DeviceTypes {
		if !d.Part {
			out = append(out, d.Name)
		}
	}
	return out
}
