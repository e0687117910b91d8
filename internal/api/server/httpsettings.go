package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/routes"
)

// settingRoutes mounts Triton's trace and log extensions: GET shows settings, POST changes them.
func (s *Server) settingRoutes(mux *routes.Mux) {
	both := func(path string, h func(http.ResponseWriter, *http.Request, map[string]json.RawMessage) error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var change map[string]json.RawMessage
			switch r.Method {
			case http.MethodGet, http.MethodHead:
			case http.MethodPost:
				var err error
				if change, err = s.settingChange(w, r); err != nil {
					s.fail(w, r, err)
					return
				}
			default:
				w.Header().Set("Allow", "GET, POST")
				writeError(w, http.StatusMethodNotAllowed, "use GET or POST here")
				return
			}
			if err := h(w, r, change); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	both("/v2/trace/setting", s.traceSetting)
	both("/v2/models/{model}/trace/setting", s.traceSetting)
	both("/v2/logging", s.logSetting)
}

// settingChange reads the settings that a request changes; none for one that asks for those in force. It returns an
// error unless the caller may change them.
func (s *Server) settingChange(w http.ResponseWriter, r *http.Request) (change map[string]json.RawMessage, err error) {
	err = s.withBody(w, r, func(body []byte) error {
		if len(body) > 0 && json.Unmarshal(body, &change) != nil {
			return oip.Errorf(oip.Invalid, "", "want an object of settings and their values")
		}
		return nil
	})
	if err == nil && len(change) > 0 {
		err = s.mayAdminister(r)
	}
	return change, err
}

func (s *Server) traceSetting(w http.ResponseWriter, r *http.Request, ask map[string]json.RawMessage) error {
	change := make(map[string][]string, len(ask))
	for name, v := range ask {
		var one string
		var list []string
		switch {
		case string(v) == "null":
		case json.Unmarshal(v, &one) == nil:
			list = []string{one}
		case json.Unmarshal(v, &list) == nil:
		default:
			return oip.Errorf(oip.Invalid, name, "is %.100s, want a string or a list of strings", v)
		}
		change[name] = list
	}
	now, err := s.traceOf(r.PathValue("model"), change)
	if err != nil {
		return err
	}
	out := make(map[string]any, len(now))
	for name, value := range now {
		out[name] = value[0]
		if name == "trace_level" {
			out[name] = value
		}
	}
	return reply(w, out)
}

func (s *Server) logSetting(w http.ResponseWriter, r *http.Request, ask map[string]json.RawMessage) error {
	change := make(map[string]any, len(ask))
	for name, v := range ask {
		var x any
		if err := json.Unmarshal(v, &x); err != nil {
			return oip.Errorf(oip.Invalid, name, "%v", err)
		}
		if f, ok := x.(float64); ok {
			if f < 0 || f > math.MaxUint32 || f != math.Trunc(f) {
				return oip.Errorf(oip.Invalid, name, "is %v, want a whole number, at least 0", f)
			}
			x = uint32(f)
		}
		change[name] = x
	}
	now, err := s.settings.log(change)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"log_file":"","log_info":%v,"log_warning":%v,"log_error":%v,"log_verbose_level":%d,`+
		`"log_format":%q}`, now.Info, now.Warning, now.Error, now.Verbose, now.Format)
	return nil
}
