package resources

import (
	"regexp"
	"strings"

	"github.com/sluice-serving/sluice/internal/config"
)

// reasons say why settings below a path have no counterpart; the first that fits counts.
var reasons = []struct{ below, why string }{
	{"placement", "the plan decides what runs where"},
	{"store", "name a volume claim as store of the Fleet"},
	{"models", "a cluster serves the apps that its InferenceApps list"},
	{"workers[].backend.addresses", "a MachineType describes pods; they take the place of servers with addresses"},
	{"workers[].backend.address", "a MachineType describes pods; they take the place of servers with addresses"},
	{"workers[].backend", "pods have it from their image, or from podTemplate of the MachineType"},
	{"workers[].accelerators", "Kubernetes gives devices to pods"},
	{"system", "a Fleet names a whole system by its name, with its options"},
	{"apps[].system", "a Fleet names a whole system by its name, with its options"},
	{"server.tls.admin", "the dispatchers' admin address is plain, for probes and Prometheus; no service leads to it"},
	{"server", "dispatchers listen on ports 8000 and 8001 of the fleet's service, with the defaults"},
	{"access.audit", "dispatchers write those lines in their log"},
	{"access", "dispatchers write no log of calls"},
	{"tenants", "a Fleet's tenants have weight, rate and concurrency alone"},
	{"telemetry", "dispatchers write logs as JSON and serve metrics"},
	{"apps[].version_of", "make an InferenceApp of its own of each version"},
	{"", "an InferenceApp has no such setting: the default holds"},
}

var inList = regexp.MustCompile(`\[[0-9]+\]`)

// reason returns why a setting has no counterpart; the empty text for one that has.
func reason(path string) string {
	if _, had := Path(config.File{}, path); had {
		return ""
	}
	p := inList.ReplaceAllString(path, "[]")
	for _, r := range reasons {
		if below(p, r.below) {
			return r.why
		}
	}
	return ""
}

// below tells whether a setting is the other or one in it.
func below(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (of == "" || rest == "" || of[len(of)-1] == '.' || rest[0] == '.' || rest[0] == '[')
}
