package config

import (
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/tensor/ops"
)

// Defaults of a file. docs/configuration.md repeats them in words.
const (
	defaultSystem     = "sluice" // of package systems, which this package may not know
	defaultLate       = "drop"
	defaultColdWait   = 30 * time.Second
	defaultQueueLimit = 1000
	defaultPercentile = 99
	defaultMaxBatch   = 64
)

// defaults fills in what was left out. A value that the file gives stays, even when it is wrong.
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
	s := &f.Server
	orText(f, &s.HTTP, ":8000", "server.http")
	orText(f, &s.GRPC, ":8001", "server.grpc")
	orText(f, &s.Admin, "127.0.0.1:8002", "server.admin")
	orTime(f, &s.DrainTimeout, 30*time.Second, "server.drain_timeout")
	l := &s.Limits
	orSize(f, &l.Request, 64<<20, "server.limits.request")
	orSize(f, &l.Header, 1<<20, "server.limits.header")
	orInt(f, &l.Connections, 1024, "server.limits.connections")
	orInt(f, &l.Items, 1024, "server.limits.items")
	orInt(f, &l.Rows, 1024, "server.limits.rows")
	orSize(f, &l.State, 1<<20, "server.limits.state")
	orSize(f, &l.AllStates, 256<<20, "server.limits.all_states")
	orSize(f, &l.Model, 2<<30, "server.limits.model")
	if f.Store != "" {
		orText(f, &s.AdminToken, filepath.Join(f.Store, "admin.token"), "server.admin_token")
	}
	orTime(f, &l.ReadTimeout, 30*time.Second, "server.limits.read_timeout")
	orTime(f, &l.IdleTimeout, 2*time.Minute, "server.limits.idle_timeout")
	t := &f.Telemetry
	orText(f, &t.LogLevel, "info", "telemetry.log_level")
	orText(f, &t.LogFormat, "text", "telemetry.log_format")
	orInt(f, &t.Decisions, 65536, "telemetry.decisions")
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
	orInt(f, &a.QueueLimit, defaultQueueLimit, path+".queue_limit")
	for _, s := range f.stages(a, path) {
		if s.Function != "" {
			continue
		}
		for i := range s.Variants {
			v, p := &s.Variants[i], at(s.path+".variants", i)
			orText(f, &v.Name, v.Model, p+".name")
			orText(f, &v.Model, v.Name, p+".model")
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
