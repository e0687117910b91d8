package resources

import (
	"regexp"
	"strings"
)

// taken are the settings of a sluice.yaml that resources can say. [] stands for any place of a list; a pattern that
// ends in a dot stands for all names below it.
var taken = []string{
	"version", "profiles[]", "models.repository",
	"device_types[].name", "device_types[].price_per_hour", "device_types[].tenure", "device_types[].cores",
	"device_types[].memory", "device_types[].most", "device_types[].accelerators", "device_types[].part",
	"device_types[].percent",
	"workers[].name", "workers[].device_type", "workers[].count", "workers[].backend.kind",
	"workers[].backend.load_models",
	"system.name", "system.options.", "system.replan", "system.budget", "system.late",
	"apps[].system.name", "apps[].system.options.", "apps[].system.replan", "apps[].system.budget",
	"apps[].system.late",
	"server.tls.cert", "server.tls.key", "server.tls.client_ca", "server.tls.client_optional", "access.keys",
	"access.certificates", "access.jwt.", "access.anonymous", "tenants[].name", "tenants[].weight", "tenants[].rate",
	"tenants[].concurrency",
	"apps[].name", "apps[].slo.", "apps[].late", "apps[].weight", "apps[].accuracy_floor", "apps[].accuracy_target",
	"apps[].min_instances", "apps[].max_instances", "apps[].demand", "apps[].inputs", "apps[].outputs",
	"apps[].variants[].name", "apps[].variants[].model", "apps[].variants[].version", "apps[].variants[].accuracy",
	"apps[].variants[].max_batch", "apps[].variants[].memory",
	"apps[].stages[].name", "apps[].stages[].function", "apps[].stages[].with.", "apps[].stages[].stateful",
	"apps[].stages[].inputs.", "apps[].stages[].outputs.", "apps[].stages[].next",
	"apps[].stages[].variants[].name", "apps[].stages[].variants[].model", "apps[].stages[].variants[].version",
	"apps[].stages[].variants[].accuracy", "apps[].stages[].variants[].max_batch",
	"apps[].stages[].variants[].memory",
}

// said are settings that are explained where they are met.
var said = []string{"apps[].variants[].python", "apps[].stages[].variants[].python"}

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
	p := inList.ReplaceAllString(path, "[]")
	for _, list := range [][]string{taken, said} {
		for _, t := range list {
			if below(p, t) {
				return ""
			}
		}
	}
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
