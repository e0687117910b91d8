package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/api/oip/pb"
)

// errControl is the error for clients on other machines that want to load or unload models.
var errControl = oip.Errorf(oip.Unsupported, "", "models can be loaded and unloaded from this machine only")

// mayControl returns an error unless a caller may load and unload models.
func (s *Server) mayControl(local bool) error {
	if s.config.ModelControl || local {
		return nil
	}
	return errControl
}

// load loads a model. parameters are the names of what the client wants to have loaded in another way than the
// repository has it. Errors are worded as Triton words them, since existing clients look for "failed to load".
func (s *Server) load(ctx context.Context, name string, parameters []string, local bool) error {
	m, ok := s.service.Lookup(name)
	if !ok {
		return oip.Errorf(oip.NotFound, "", "failed to load '%.200s', failed to poll from model repository: there "+
			"is no such model", name)
	}
	if err := s.mayControl(local); err != nil {
		return err
	}
	for _, p := range parameters {
		if p == "config" || strings.HasPrefix(p, "file:") {
			return oip.Errorf(oip.Unsupported, "parameters."+p[:min(len(p), 60)], "failed to load '%s', failed to "+
				"poll from model repository: a configuration or a file cannot be given here; change the repository, "+
				"or deploy the model as a function", name)
		}
	}
	if m.Failed != "" {
		return oip.Errorf(oip.Internal, "", "failed to load '%s', %s", name, m.Failed)
	}
	return s.service.Load(ctx, m)
}

// unload unloads a model.
func (s *Server) unload(ctx context.Context, name string, local bool) error {
	m, ok := s.service.Lookup(name)
	if !ok {
		return unknownModel(name)
	}
	if err := s.mayControl(local); err != nil {
		return err
	}
	return s.service.Unload(ctx, m)
}

func (s *Server) postLoad(w http.ResponseWriter, r *http.Request) error {
	body, err := s.body(w, r)
	if err != nil {
		return err
	}
	var ask struct {
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &ask); err != nil {
			return oip.Errorf(oip.Invalid, "", "failed to load '%.200s', the request is no JSON object",
				r.PathValue("model"))
		}
	}
	names := slices.Sorted(maps.Keys(ask.Parameters))
	if err := s.load(r.Context(), r.PathValue("model"), names, isLocal(r.RemoteAddr)); err != nil {
		return err
	}
	return reply(w, struct{}{})
}

func (s *Server) postUnload(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.body(w, r); err != nil {
		return err
	}
	if err := s.unload(r.Context(), r.PathValue("model"), isLocal(r.RemoteAddr)); err != nil {
		return err
	}
	return reply(w, struct{}{})
}

// RepositoryModelLoad implements Triton's extension.
func (g *grpcService) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	names := slices.Sorted(maps.Keys(r.GetParameters()))
	if err := g.s.load(ctx, r.GetModelName(), names, fromHere(ctx)); err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelLoadResponse{}, nil
}

// RepositoryModelUnload implements Triton's extension.
func (g *grpcService) RepositoryModelUnload(ctx context.Context, r *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	if err := g.s.unload(ctx, r.GetModelName(), fromHere(ctx)); err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}
