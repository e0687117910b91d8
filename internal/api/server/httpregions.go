package server

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// errCUDA is the answer to every attempt to share memory of a GPU.
var errCUDA = oip.Errorf(oip.Unsupported, "", "CUDA shared memory is not supported: tensors pass through the memory "+
	"of the machine on their way to a model; use system shared memory")

// errRegions is the error for clients on other machines that want to register shared memory.
var errRegions = oip.Errorf(oip.Unsupported, "", "shared memory can be registered from this machine only")

type jsonRegion struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Offset   int64  `json:"offset"`
	ByteSize int64  `json:"byte_size"`
}

// regionRoutes mounts Triton's shared memory extensions.
func (s *Server) regionRoutes(get, post func(string, func(http.ResponseWriter, *http.Request) error)) {
	const system, cuda = "/v2/systemsharedmemory", "/v2/cudasharedmemory"
	for _, p := range []string{"", "/region/{region}"} {
		get(system+p+"/status", s.getRegions)
		post(system+p+"/unregister", func(w http.ResponseWriter, r *http.Request) error {
			if err := s.mayRegister(r); err != nil {
				return err
			}
			if err := s.regions.Enabled(); err != nil {
				return err
			}
			s.regions.Unregister(r.PathValue("region"))
			return reply(w, struct{}{})
		})
		get(cuda+p+"/status", func(w http.ResponseWriter, _ *http.Request) error { return reply(w, []jsonRegion{}) })
		post(cuda+p+"/unregister", func(w http.ResponseWriter, _ *http.Request) error {
			return reply(w, struct{}{})
		})
	}
	post(system+"/region/{region}/register", s.postRegion)
	post(cuda+"/region/{region}/register", func(http.ResponseWriter, *http.Request) error { return errCUDA })
}

// isLocal reports whether a peer is on this machine.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// mayRegister returns an error unless a caller may register and unregister shared memory: it is on this machine, and
// its request is meant for this server.
func (s *Server) mayRegister(r *http.Request) error {
	if !isLocal(r.RemoteAddr) {
		return errRegions
	}
	return s.config.checkSource(r)
}

func (s *Server) getRegions(w http.ResponseWriter, r *http.Request) error {
	list, err := s.regions.List(r.PathValue("region"))
	if err != nil {
		return err
	}
	out := make([]jsonRegion, len(list))
	for k, x := range list {
		out[k] = jsonRegion{x.Name, x.Key, x.Offset, x.Size}
	}
	return reply(w, out)
}

func (s *Server) postRegion(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayRegister(r); err != nil {
		return err
	}
	err := s.withBody(w, r, func(body []byte) error {
		var ask struct {
			Key      string `json:"key"`
			Offset   uint64 `json:"offset"`
			ByteSize uint64 `json:"byte_size"`
		}
		if err := json.Unmarshal(body, &ask); err != nil {
			return oip.Errorf(oip.Invalid, "", `want {"key": NAME, "offset": BYTES, "byte_size": BYTES}: %v`, err)
		}
		return s.regions.Register(r.PathValue("region"), ask.Key, ask.Offset, ask.ByteSize)
	})
	if err != nil {
		return err
	}
	return reply(w, struct{}{})
}
