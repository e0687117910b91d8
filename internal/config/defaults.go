package config

import (
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/limits"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
)

// Defaults of settings, beside the limits of package internal/limits. docs/configuration.md repeats them in words.
const (
	defaultSystem   = "sluice" // of package systems, which this package may not import
	defaultLate     = "drop"
	defaultMaxBatch = 64
)

// Defaults that other packages use.
const (
	// DefaultQueueLimit is how many queries of an app may wait whose demand nobody says.
	DefaultQueueLimit = 1000
	// maxQueueLimit is the largest that a file may say.
	maxQueueLimit = 1 << 30
	// DefaultHTTP is where HTTP is answered.
	DefaultHTTP = ":8000"
	// DefaultGRPC is where gRPC is answered.
	DefaultGRPC = ":8001"
	// DefaultAdmin is where metrics, decisions and administration are.
	DefaultAdmin = "127.0.0.1:8002"
)

// defaults sets missing values. A value in the file stays, even a wrong one.
func (f *File) defaults() {
	f.declaredDefaults(f)
	for i := range f.Workers {
		w, path := &f.Workers[i], at("workers", i)
		if machines := f.machines(); len(machines) == 1 {
			orText(f, &w.DeviceType, machines[0], path+".device_type")
		}
	}
	f.System.defaults()
	for i := range f.Apps {
		f.Apps[i].defaults(f, at("apps", i))
	}
	for i := range f.Placement {
		if len(f.Apps) == 1 {
			orText(f, &f.Placement[i].App, f.Apps[0].Name, at("placement", i)+".app")
		}
	}
	s, l := &f.Server, &f.Server.Limits
	orInt(f, &l.ConnectionsPerAddress, (l.Connections+1)/2, "server.limits.connections_per_address")
	orSize(f, &l.JSON, min(limits.HeadBytes, max(l.Request, 1<<10)), "server.limits.json")
	if f.Store != "" {
		orText(f, &s.AdminToken, filepath.Join(f.Store, "admin.token"), "server.admin_token")
	}
	t := &f.Telemetry
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
	orInt(f, &a.QueueLimit, a.queueLimit(), path+".queue_limit")
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
	}
}

// queueLimit is how many queries may wait where the file does not say.
func (a *App) queueLimit() int {
	if within := 2 * a.Demand * time.Duration(a.SLO.Latency).Seconds(); within > DefaultQueueLimit {
		return int(min(within, maxQueueLimit))
	}
	return DefaultQueueLimit // also where the demand is no number
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

// machines are the names of the device types that are not parts.
func (f *File) machines() (out []string) {
	for _, d := range f.DeviceTypes {
		if !d.Part {
			out = append(out, d.Name)
		}
	}
	return out
}
