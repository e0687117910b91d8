package server_test

import (
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/internal/api/server"
)

// manyModels is a service with models whose readiness tests set.
type manyModels struct {
	*fakeService
	models []*server.Model
	down   map[string]bool
}

func (p *manyModels) Models() []*server.Model                   { return p.models }
func (p *manyModels) ModelReady(m *server.Model, _ string) bool { return !p.down[m.Name] }

// Watchers of grpc.health.v1 are told what has changed: a model that is not ready, one that is gone, one that is back.
// While nothing changes, looking allocates nothing, however many models there are.
func TestHealthFollowsModels(t *testing.T) {
	p := &manyModels{fakeService: newFakeService(), down: make(map[string]bool)}
	for k := range 100 {
		p.models = append(p.models, &server.Model{Name: fmt.Sprint("m", k)})
	}
	s, err := server.New(server.Config{HTTP: "127.0.0.1:0", GRPC: server.Off, Admin: server.Off}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	update := s.HealthUpdates()
	expect := func(name, want string) {
		t.Helper()
		if update(); s.Health(name) != want {
			t.Errorf("%q is %s, want %s", name, s.Health(name), want)
		}
	}
	expect("", "SERVING")
	expect("m7", "SERVING")
	if got := testing.AllocsPerRun(10, update); got > 0 {
		t.Errorf("%v allocations with nothing changed", got)
	}
	p.down["m7"] = true
	expect("m7", "NOT_SERVING")
	all := p.models
	p.models = all[8:]
	expect("m7", "SERVICE_UNKNOWN")
	expect("m8", "SERVING")
	p.models, p.down = all, nil
	expect("m7", "SERVING")
}
