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

// load loads a model. parameters are the names of what the client wants to have loaded in another way than the
// repository has it. Errors are worded as Triton words them, since existing clients look for "failed to load".
func (s *Server) load(ctx context.Context, name string, parameters []string) error {
	m, ok := s.service.Lookup(name)
	if !ok {
		return oip.Errorf(oip.NotFound, "", "failed to load '%.200s', failed to poll from model repository: there "+
			"is no such model", name)
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
func (s *Server) unload(ctx context.Context, name string) error {
	m, ok := s.service.Lookup(name)
	if !ok {
		return unknownModel(name)
	}
	return s.service.Unload(ctx, m)
}

func (s *Server) postLoad(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayControl(r); err != nil {
		return err
	}
	err := s.withBody(w, r, func(body []byte) error {
		var ask struct {
			Parameters map[string]json.RawMessage `json:"parameters"`
		}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &ask); err != nil {
				return oip.Errorf(oip.Invalid, "", "failed to load '%.200s', the request is no JSON object",
					r.PathValue("model"))
			}
		}
		return s.load(r.Context(), r.PathValue("model"), slices.Sorted(maps.Keys(ask.Parameters)))
	})
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}

func (s *Server) postUnload(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayControl(r); err != nil {
		return err
	}
	err := s.withBody(w, r, func([]byte) error { return s.unload(r.Context(), r.PathValue("model")) })
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}

// RepositoryModelLoad implements Triton's extension.
func (g *grpcService) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (
	*pb.RepositoryModelLoadResponse, error) {
	err := g.mayControl(ctx)
	if err == nil {
		err = g.s.load(ctx, r.GetModelName(), slices.Sorted(maps.Keys(r.GetParameters())))
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelLoadResponse{}, nil
}

// RepositoryModelUnload implements Triton's extension.
func (g *grpcService) RepositoryModelUnload(ctx context.Context, r *pb.RepositoryModelUnloadRequest) (
	*pb.RepositoryModelUnloadResponse, error) {
	err := g.mayControl(ctx)
	if err == nil {
		err = g.s.unload(ctx, r.GetModelName())
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}
