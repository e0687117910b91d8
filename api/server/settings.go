package server

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-serving/sluice/api/oip"
)

// traceDefaults are Triton's trace settings: nothing is traced.
var traceDefaults = map[string][]string{
	"trace_file": {""}, "trace_level": {"OFF"}, "trace_rate": {"1000"}, "trace_count": {"-1"}, "log_frequency": {"0"},
	"trace_mode": {"triton"},
}

// logSettings are Triton's log settings, as far as they can be changed.
type logSettings struct {
	Info, Warning, Error bool
	Verbose              uint32
}

// settings are what clients set by Triton's trace and log extensions. It is safe for concurrent use.
type settings struct {
	level *slog.LevelVar // of the log; nil when it cannot be changed

	mu     sync.Mutex
	traces map[string]map[string][]string // by model, "" for all; what differs from the defaults
	logs   logSettings
}

func newSettings(level *slog.LevelVar) *settings {
	s := &settings{
		level: level, traces: make(map[string]map[string][]string), logs: logSettings{Info: true, Warning: true,
			Error: true},
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
// setting back. Nothing can be traced yet: only settings that leave traces off are taken.
func (s *settings) trace(model string, change map[string][]string) (map[string][]string, error) {
	for name, value := range change {
		if _, ok := traceDefaults[name]; !ok {
			return nil, oip.Errorf(oip.Invalid, "", "Unknown trace setting: %.100q", name)
		}
		switch name {
		case "trace_file":
			return nil, oip.Errorf(oip.Invalid, "", "trace file location can not be updated through network protocol")
		case "trace_level":
			if len(value) > 0 && !slices.Equal(value, []string{"OFF"}) {
				return nil, oip.Errorf(oip.Unsupported, "trace_level", "is %q: requests cannot be traced; see "+
					"telemetry.journal and `sluice explain`", value)
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
	own := s.traces[model]
	if own == nil {
		own = make(map[string][]string)
		if len(change) > 0 {
			s.traces[model] = own
		}
	}
	for name, value := range change {
		if len(value) == 0 {
			delete(own, name)
		} else {
			own[name] = value
		}
	}
	out := make(map[string][]string, len(traceDefaults))
	for name, value := range traceDefaults {
		out[name] = value
		for _, from := range []map[string][]string{s.traces[""], own} {
			if set, ok := from[name]; ok {
				out[name] = set
			}
		}
	}
	return out, nil
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
			if value != "default" {
				return s.logs, oip.Errorf(oip.Invalid, name, "is %.40v, want default: telemetry.log_format has the "+
					"choice",
					value)
			}
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
	return s.settings.trace(model, change)
}
