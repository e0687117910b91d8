package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/routes"
)

// Parameters of the requests that load and unload models.
const (
	configParameter  = "config"
	filePrefix       = "file:"
	membersParameter = "unload_dependents"
	// SettingPrefix begins the names of parameters that only sluice knows.
	SettingPrefix = "sluice."
)

// load loads a model. Errors are worded as Triton words them, since existing clients look for "failed to load".
func (s *Server) load(ctx context.Context, name string, how Loading) error {
	if strings.TrimSpace(name) == "" {
		return oip.Errorf(oip.Invalid, "", "Model name cannot be empty. Please enter a valid name to deploy.")
	}
	_, known := s.service.Lookup(name)
	if !known && (strings.ContainsAny(name, `/\`) || strings.TrimSpace(name) == "..") {
		return oip.Errorf(oip.Invalid, "", "failed to load '%.200s', model name must not contain path traversal "+
			"characters", name)
	}
	err := s.service.Load(ctx, name, how)
	if err == nil {
		return nil
	}
	code, text := oip.Internal, err.Error()
	if known := (*oip.Error)(nil); errors.As(err, &known) {
		code = known.Code
	} else if ctx.Err() != nil {
		return err
	}
	if strings.HasPrefix(text, "explicit model load") {
		return err
	}
	return oip.Errorf(code, "", "failed to load '%.200s', %s", name, text)
}

// unload unloads a model, and with members the models that it is made of.
func (s *Server) unload(ctx context.Context, name string, members bool) error {
	m, ok := s.service.Lookup(name)
	if !ok {
		return unknownModel(name)
	}
	return s.service.Unload(ctx, m, members)
}

// controlled answers a request that loads or unloads a model, from a caller who may, with what do does.
func (s *Server) controlled(w http.ResponseWriter, r *http.Request,
	do func(parameters map[string]json.RawMessage) error) error {
	err := s.withBody(w, r, func(body []byte) error { return s.withParameters(r, body, do) })
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}

func (s *Server) withParameters(r *http.Request, body []byte, do func(map[string]json.RawMessage) error) error {
	var ask struct {
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &ask); err != nil {
			return oip.Errorf(oip.Invalid, "", "failed to load '%.200s', the request is no JSON object",
				r.PathValue("model"))
		}
	}
	if most := s.config.Message.Parameters; len(ask.Parameters) > most {
		return oip.Errorf(oip.TooLarge, "parameters", "are %d, more than %d (server.limits.parameters)",
			len(ask.Parameters), most)
	}
	return do(ask.Parameters)
}

// postLoad loads a model for a caller who may.
func (s *Server) postLoad(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayControl(r); err != nil {
		return err
	}
	return s.loadAsked(w, r)
}

func (s *Server) loadAsked(w http.ResponseWriter, r *http.Request) error {
	return s.controlled(w, r, func(parameters map[string]json.RawMessage) error {
		var how Loading
		for name, value := range parameters {
			file, isFile := strings.CutPrefix(name, filePrefix)
			if name != configParameter && !isFile {
				continue
			}
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return oip.Errorf(oip.Invalid, "parameters."+name[:min(len(name), 100)], "is no text")
			}
			if !isFile {
				how.Config = []byte(text)
				continue
			}
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return oip.Errorf(oip.Invalid, "parameters."+name[:min(len(name), 100)], "is no base64: %v", err)
			}
			how.add(file, data)
		}
		return s.load(r.Context(), r.PathValue("model"), how)
	})
}

// postUnload unloads a model for a caller who may.
func (s *Server) postUnload(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayControl(r); err != nil {
		return err
	}
	return s.unloadAsked(w, r)
}

func (s *Server) unloadAsked(w http.ResponseWriter, r *http.Request) error {
	return s.controlled(w, r, func(parameters map[string]json.RawMessage) error {
		members := false
		if x, ok := parameters[membersParameter]; ok && json.Unmarshal(x, &members) != nil {
			return oip.Errorf(oip.Invalid, "parameters."+membersParameter, "is neither true nor false")
		}
		return s.unload(r.Context(), r.PathValue("model"), members)
	})
}

// repositoryHandler serves the repository extension on the admin address, whose callers may load and unload models.
func (s *Server) repositoryHandler() http.Handler { // behind adminEntry
	mux := new(routes.Mux)
	s.handle(mux, http.MethodPost, "/v2/repository/index", s.postIndex)
	s.handle(mux, http.MethodPost, "/v2/repository/models/{model}/load", s.loadAsked)
	s.handle(mux, http.MethodPost, "/v2/repository/models/{model}/unload", s.unloadAsked)
	return mux
}

// RepositoryModelLoad implements Triton's extension.
func (g *grpcService) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	err := g.mayControl(ctx)
	if err == nil {
		var how Loading
		if how, err = loadingOf(r, g.s.config.Message.Parameters); err == nil {
			err = g.s.load(ctx, r.GetModelName(), how)
		}
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelLoadResponse{}, nil
}

// loadingOf reads the parameters of a request.
func loadingOf(r *pb.RepositoryModelLoadRequest, most int) (how Loading, err error) {
	if len(r.GetParameters()) > most {
		return how, oip.Errorf(oip.TooLarge, "parameters", "are %d, more than %d (server.limits.parameters)",
			len(r.GetParameters()), most)
	}
	for name, value := range r.GetParameters() {
		file, isFile := strings.CutPrefix(name, filePrefix)
		switch {
		case name == configParameter:
			if _, ok := value.GetParameterChoice().(*pb.ModelRepositoryParameter_StringParam); !ok {
				return how, oip.Errorf(oip.Invalid, "parameters."+configParameter, "is no string_param")
			}
			how.Config = []byte(value.GetStringParam())
		case isFile:
			if _, ok := value.GetParameterChoice().(*pb.ModelRepositoryParameter_BytesParam); !ok {
				return how, oip.Errorf(oip.Invalid, "parameters."+name[:min(len(name), 100)], "is no bytes_param")
			}
			how.add(file, value.GetBytesParam())
		case strings.HasPrefix(name, SettingPrefix):
			if how.Settings == nil {
				how.Settings = make(map[string]string)
			}
			how.Settings[strings.TrimPrefix(name, SettingPrefix)] = value.GetStringParam()
		}
	}
	return how, nil
}

// RepositoryModelUnload implements Triton's extension.
func (g *grpcService) RepositoryModelUnload(ctx context.Context, r *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	err := g.mayControl(ctx)
	if err == nil {
		err = g.s.unload(ctx, r.GetModelName(), r.GetParameters()[membersParameter].GetBoolParam())
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}
