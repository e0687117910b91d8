package server

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// traceTimestamps is the trace_level of times.
const traceTimestamps = "TIMESTAMPS"

// traceSettings are Triton's trace settings.
type traceSettings struct {
	folder bool                           // there is a folder for traces
	set    map[string]map[string][]string // by model, "" for all; what differs from the defaults
}

// traceDefaults are Triton's trace settings: nothing is traced.
var traceDefaults = map[string][]string{
	"trace_file": {""}, "trace_level": {"OFF"}, "trace_rate": {"1000"}, "trace_count": {"-1"}, "log_frequency": {"0"},
	"trace_mode": {"triton"},
}

// logSettings are Triton's log settings, as far as they can be changed.
type logSettings struct {
	Info, Warning, Error bool
	Verbose              uint32
	Format               string // as clients set it; the log's times are written as ISO 8601 in either
}

// settings are what clients set by Triton's trace and log extensions. It is safe for concurrent use.
type settings struct {
	level *slog.LevelVar // of the log; nil when it cannot be changed

	mu     sync.Mutex
	traces traceSettings
	logs   logSettings
}

func newSettings(level *slog.LevelVar) *settings {
	s := &settings{
		level: level, traces: traceSettings{set: make(map[string]map[string][]string)},
		logs: logSettings{Info: true, Warning: true, Error: true, Format: "default"},
	}
	if level != nil {
		at := level.Level()
		s.logs.Info, s.logs.Warning = at <= slog.LevelInfo, at <= slog.LevelWarn
		if at <= slog.LevelDebug {
			s.logs.Verbose = 1
		}
	}
	return s
}

// trace changes the trace settings of a model, or of all for "", and returns those in force. A nil value takes a
// setting back. Without a folder for traces only settings that leave them off are taken.
func (s *settings) trace(model string, change map[string][]string) (map[string][]string, error) {
	for name, value := range change {
		if _, ok := traceDefaults[name]; !ok {
			return nil, oip.Errorf(oip.Invalid, "", "Unknown trace setting: %.100q", name)
		}
		switch name {
		case "trace_file":
			if !s.traces.folder {
				return nil, oip.Errorf(oip.Invalid, "", "trace file location can not be updated through network "+
					"protocol: the server has no folder for traces (telemetry.traces)")
			}
			if len(value) > 0 {
				if err := checkTraceFile(value[0]); err != nil {
					return nil, err
				}
			}
		case "trace_level":
			off := len(value) == 0 || slices.Equal(value, []string{"OFF"})
			if !off && (!s.traces.folder || !slices.Equal(value, []string{traceTimestamps})) {
				return nil, oip.Errorf(oip.Unsupported, "trace_level", "is %q: TIMESTAMPS can be traced, by a server "+
					"that has a folder for traces (telemetry.traces)", value)
			}
		case "trace_mode":
			if len(value) > 0 && !slices.Equal(value, []string{"triton"}) {
				return nil, oip.Errorf(oip.Unsupported, "trace_mode", "is %q, want triton", value)
			}
		default:
			if len(value) > 1 || len(value) == 1 && !isWhole(value[0]) {
				return nil, oip.Errorf(oip.Invalid, name, "is %.100q, want a whole number", value)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.traces.set[model]
	if own == nil {
		own = make(map[string][]string)
		if len(change) > 0 {
			s.traces.set[model] = own
		}
	}
	for name, value := range change {
		if len(value) == 0 {
			delete(own, name)
		} else {
			own[name] = value
		}
	}
	return s.traces.inForce(model), nil
}

// inForce are the settings of a model, or of all.
func (t *traceSettings) inForce(model string) map[string][]string {
	out := make(map[string][]string, len(traceDefaults))
	for name, value := range traceDefaults {
		out[name] = value
		for _, from := range []map[string][]string{t.set[""], t.set[model]} {
			if set, ok := from[name]; ok {
				out[name] = set
			}
		}
	}
	return out
}

// traceNow returns the trace settings of a model.
func (s *settings) traceNow(model string) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces.inForce(model)
}

// traced reports whether anything is traced.
func (s *settings) traced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range s.traces.set {
		if level := own["trace_level"]; len(level) > 0 && level[0] != "OFF" {
			return true
		}
	}
	return false
}

func isWhole(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// log changes the log settings and returns those in force. Values are bool, uint32 and string.
func (s *settings) log(change map[string]any) (logSettings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.logs
	for name, value := range change {
		ok := true
		switch name {
		case "log_info":
			next.Info, ok = value.(bool)
		case "log_warning":
			next.Warning, ok = value.(bool)
		case "log_error":
			next.Error, ok = value.(bool)
		case "log_verbose_level":
			next.Verbose, ok = value.(uint32)
		case "log_format":
			if value != "default" && value != "ISO8601" {
				return s.logs, oip.Errorf(oip.Invalid, name, "is %.40v, want default or ISO8601", value)
			}
			next.Format, _ = value.(string)
		case "log_file":
			return s.logs, oip.Errorf(oip.Invalid, "", "log file location can not be updated through network protocol")
		default:
			return s.logs, oip.Errorf(oip.Invalid, "", "Unknown log setting: %.100q", name)
		}
		if !ok {
			return s.logs, oip.Errorf(oip.Invalid, name, "has a value of the wrong kind: %.40v", value)
		}
	}
	s.logs = next
	if s.level != nil && len(change) > 0 {
		s.level.Set(levelOf(next))
	}
	return next, nil
}

// levelOf is the lowest level that is logged.
func levelOf(l logSettings) slog.Level {
	switch {
	case l.Verbose > 0:
		return slog.LevelDebug
	case l.Info:
		return slog.LevelInfo
	case l.Warning:
		return slog.LevelWarn
	case l.Error:
		return slog.LevelError
	}
	return slog.LevelError + 1
}

// traceOf changes the trace settings of a model, or of all, and returns those in force. The caller may change them.
func (s *Server) traceOf(model string, change map[string][]string) (map[string][]string, error) {
	if model != "" {
		if _, ok := s.service.Lookup(model); !ok {
			return nil, unknownModel(model)
		}
	}
	now, err := s.settings.trace(model, change)
	if err == nil && len(change) > 0 {
		s.tracer.changed(model, change)
	}
	return now, err
}
