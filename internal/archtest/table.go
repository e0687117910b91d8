package archtest

import "slices"

// Module is the path of the module the rules are about.
const Module = "github.com/sluice-serving/sluice"

// pureFloors is the highest floor whose packages decide without effects: no I/O, clock, lock or goroutine.
const pureFloors = 4

// row places the packages that match a pattern on a floor.
type row struct {
	floor   int
	pattern string // see match
	// planned marks a pattern without packages. It must be removed when the first package appears, so that the table is
	// always right and a renamed package is noticed.
	planned bool
}

// floors lists the floors, top to bottom as in ARCHITECTURE.md. The longest matching pattern decides. A package on one
// floor may import those below it and, on its own floor, those that share its first folder; sameFloor lists other
// imports within a floor.
var floors = []row{
	{8, "cmd/...", false},
	{8, "internal/cli/...", false},
	{8, "examples/...", false},
	{8, "test/...", false},

	{7, ".", false},                       // for programs that embed the application
	{7, "internal/host", false},           // the application: it alone knows all that stands below
	{7, "internal/host/machines", false},  // backends, accelerators, machines that are supplied
	{7, "internal/host/measuring", false}, // measures models, a running server among them
	{7, "internal/host/server", false},
	{7, "internal/host/questions", false}, // on a copy of the configuration
	{7, "internal/host/saved", false},
	{7, "internal/host/planning", false},
	{7, "internal/host/policies", false},
	{7, "internal/host/load", false},
	{7, "internal/host/worlds", false},
	{7, "internal/host/resources", false},
	{7, "internal/host/demo", false},
	{7, "internal/host/node", false}, // the worker of a fleet

	{6, "internal/api/server", false},
	{6, "internal/api/listen", false},  // bounds connections
	{6, "internal/api/memory", false},  // bounds what requests hold
	{6, "internal/api/regions", false}, // clients' shared memory
	{6, "internal/api/dashboard", false},
	{6, "operator/...", true},
	{6, "web/...", false},
	{6, "docs", false}, // the documents, shown by a server
	{6, "internal/host/functions", false},
	{6, "internal/host/store", false},
	{6, "internal/host/fault", false},
	{6, "internal/host/files", false},
	{6, "internal/runtime/*", false},
	{6, "internal/provider", false},   // how machines are had
	{6, "internal/provider/*", false}, // and from whom
	{6, "internal/measure/loadgen", false},
	{6, "internal/measure/profiler/...", false},
	{6, "internal/measure/tracing", false},
	{6, "internal/measure/samples", false},
	{6, "internal/measure/plot", false},
	{6, "internal/models/digits/...", false},
	{6, "internal/sim/experiment", false},

	{6, "papers/reproduce", false}, // what the papers' figures share
	{6, "papers/*/figures", false}, // the papers' experiments
	{6, "papers/infless/operators", false},
	{6, "papers/infless/predict", false},
	{6, "papers/kairos/ribbon", false},
	{6, "papers/later", false},
	{6, "papers/overload", false},
	{6, "papers/worlds", false},

	{5, "sim", false},
	{5, "sim/truth", false},
	{5, "internal/sim/bounds", false}, // the fluid bound beside a simulated run
	{5, "dataplane", false},
	{5, "internal/config/...", false},
	{5, "internal/measure/steps", false}, // the log of an engine, and its views
	{5, "internal/measure/telemetry", false},
	{5, "internal/measure/board", false},
	{5, "internal/api/oip/...", false},           // codec of the Open Inference Protocol: messages and conversions
	{5, "internal/api/access", false},            // who calls, what it may do, and what it did
	{5, "internal/api/routes", false},            // a ServeMux that lists its patterns
	{5, "internal/models/onnxmodel/...", false},  // reading and writing ONNX files
	{5, "internal/models/repository/...", false}, // Triton's model repository layout
	{5, "internal/runtime/native", false},
	{5, "internal/runtime/device", false}, // accelerators of this machine, and who uses which
	{5, "python", false},                  // the files of the package sluice-worker

	{4, "internal/systems", false},

	{3, "engine", false},
	{3, "internal/engine/journal", false}, // encodes over an io.Writer and an io.Reader it is handed

	{2, "policy/plan", false},
	{2, "policy/route", false},
	{2, "policy/batch", false},
	{2, "policy/scale", false},
	{2, "internal/policy/priced", false},
	{2, "internal/planner/*", false},
	{2, "papers/*", false},                // planners of papers
	{2, "papers/*/rules", false},          // routers, batchers and scalers of papers
	{2, "internal/measure/worlds", false}, // made of tables and loads

	{1, "serving/fleet", false},
	{1, "serving/profile", false},
	{1, "serving/monitor", false},
	{1, "serving/pipeline", false},
	{1, "serving/workload", false},
	{1, "serving/report", false},
	{1, "internal/measure/bound", false},

	{0, "internal/algo/*", false},
	{0, "serving", false},
	{0, "internal/limits", false},
	{0, "internal/measure/quantity", false},
	{0, "tensor", false},              // data types of payloads
	{0, "internal/tensor/ops", false}, // functions of them, for stages without a model
}

// groups are the folders that only group packages by a word. The rules treat each package in them as a folder of its
// own.
var groups = []string{
	"internal", "internal/api", "internal/engine", "internal/host", "internal/measure", "internal/models",
	"internal/policy", "internal/runtime", "internal/sim", "internal/tensor", "papers",
}

// adapters are the packages that implement the data plane's interfaces. They are named one by one, since a pattern
// would match the standard library's package runtime.
var adapters = []string{
	"internal/runtime/onnx", "internal/runtime/openinference", "internal/runtime/python", "internal/runtime/builtin",
	"internal/runtime/fake", "internal/provider/*",
}

// planners are the packages that make plans, ours and those of papers.
var planners = []string{
	"internal/planner/*", "papers/infaas", "papers/infless", "papers/ipa", "papers/kairos", "papers/loadadaptive",
	"papers/loki", "papers/nexus", "papers/proteus", "papers/ramsis", "papers/scrooge", "papers/tidal",
}

// sharedByPlanners are the packages of planners that others build on.
var sharedByPlanners = []string{
	"internal/planner/capacity", "internal/planner/diagnosis", "internal/planner/packing",
}

// rules are the ports of rules and the rules behind them.
var rules = []string{"policy/...", "internal/policy/...", "papers/*/rules"}

// product are the packages that decide, drive and serve. They know no paper. Of what ships only internal/systems, which
// registers the papers' systems, and internal/cli, which runs their figures, may.
var product = []string{
	".", "cmd/...", "dataplane/...", "engine/...", "internal/algo/...", "internal/api/...", "internal/config/...",
	"internal/engine/...", "internal/host/...", "internal/limits", "internal/measure/...", "internal/models/...",
	"internal/planner/...", "internal/policy/...", "internal/provider/...", "internal/runtime/...",
	"internal/sim/...", "internal/tensor/...", "policy/...", "serving/...", "sim/...", "tensor/...",
}

// paperFiles are the files of internal/systems that register what papers brought. All other files there compose the
// default system and what is the product's, and know no paper.
var paperFiles = []string{
	"cascades.go", "infaas.go", "infless.go", "ipa.go", "kairos.go", "keepalive.go", "loki.go", "pard.go",
	"plannerinputs.go", "proteus.go", "ramsis.go", "ramsis_baselines.go", "renting.go", "scrooge.go", "superserve.go",
	"symphony.go", "tidal.go",
}

const (
	systemsPackage = "internal/systems"
	whyPaperFiles  = "the default system depends on no paper"
)

// exempt packages have no floor: nothing that ships imports them.
var exempt = []row{
	{0, "internal/archtest", false},
	{0, "internal/bounded", false},
	{0, "internal/figuretest", false},
	{0, "internal/heldport", false},
	{0, "internal/highstest", false},
	{0, "internal/hostile", false},
	{0, "internal/hosttest", false},
	{0, "internal/longtest", false},
	{0, "internal/memnet", false},
	{0, "internal/maporder/...", false},
	{0, "internal/packingtest", false},
	{0, "internal/ruletest", false},
	{0, "internal/sbom", false},
	{0, "internal/schema", false},
	{0, "internal/simtest", false},
	{0, "tools", false}, // pins dependencies behind a build tag
}

// edge is an import that the floors alone would refuse.
type edge struct{ from, to, why string }

// sameFloor lists the imports between different folders of one floor. Each widens the rules, so each has a reason.
var sameFloor = []edge{
	{
		"internal/models/repository/...", "internal/models/onnxmodel/...",
		"a model repository describes the ONNX files that lie in it",
	},
	{
		"internal/api/oip/...", "internal/models/repository/...",
		"clients are shown a model's configuration as its repository has it",
	},
	{"internal/config/...", "internal/models/repository/...", "a first sluice.yaml is made from a model repository"},
	{"internal/host/functions", "internal/host/store", "deployed functions are kept in the store"},
	{
		"internal/host/functions", "internal/measure/profiler/...",
		"a model is measured when it is deployed, and its profile kept",
	},
	{"internal/api/server", "internal/api/listen", "a server's connections are bounded"},
	{"internal/api/server", "internal/api/memory", "what a server's requests hold is bounded"},
	{"internal/api/server", "internal/api/regions", "inputs and outputs may be in shared memory"},
	{"internal/api/regions", "internal/api/memory", "inputs in shared memory count as what a request holds"},
	{"internal/measure/telemetry", "internal/measure/steps", "metrics are a view of the log"},
	{"internal/measure/board", "internal/measure/steps", "the dashboard shows a view of the log"},
	{"internal/measure/loadgen", "internal/measure/samples", "an answer to a sample is judged as in a profile"},
	{"internal/host/files", "internal/host/fault", "a file that cannot be read is a fault of a kind"},
	{".", "internal/host", "programs embed the application through the root package"},
	{".", "internal/host/fault", "errors have kinds"},
	{".", "internal/host/measuring", "programs embed the application through the root package"},
	{".", "internal/host/server", "programs embed the application through the root package"},
	{"internal/host", "internal/host/machines", "a configuration that was opened says which machines run it"},
	{"internal/host/measuring", "internal/host/machines", "models are measured on the machines that run them"},
	{"internal/host/server", "internal/host/machines", "a server runs models on its machines"},
	{"internal/host/measuring", "internal/host", "what is measured are the models of a configuration that was opened"},
	{"internal/host/measuring", "internal/host/server", "what serving costs beside the models is measured on a server"},
	{"internal/host/server", "internal/host", "a server runs a configuration that was opened"},
	{"internal/host/server", "internal/host/questions", "the dashboard of a server asks what if"},
	{"internal/host/questions", "internal/host", "questions are asked of a configuration that was opened"},
	{"internal/host/saved", "internal/host", "saved runs are replayed"},
	{"internal/host/planning", "internal/host", "questions about fleets are asked of a configuration that was opened"},
	{"internal/host/policies", "internal/host", "policies are made by the planner of a configuration that was opened"},
	{"internal/host/resources", "internal/host", "resources are made of a configuration that was opened"},
	{"internal/host/load", "internal/host", "what a load calls are the apps of a configuration that was opened"},
	{"internal/host/demo", "internal/host", "a demonstration is a program that embeds the host"},
	{"internal/host/demo", "internal/host/measuring", "a demonstration measures its models"},
	{"internal/host/demo", "internal/host/server", "a demonstration runs a server"},
	{"internal/host/planning", "internal/host/questions", "advice says what to ask next"},
	{"internal/host/demo", "internal/host/load", "a demonstration sends a load to its server"},
	{"internal/host/demo", "internal/host/planning", "a demonstration shows its plans"},
	{"cmd/...", "internal/cli/...", "a program is the command line and nothing else"},
	{"internal/cli/...", "examples/training/...", "sluice demo --train makes the demonstration's models again"},
	{"papers/...", "internal/sim/experiment", "a paper's experiment is a sweep"},
	{"papers/...", "internal/measure/plot", "a paper's figure is a plot"},
	{"papers/...", "internal/measure/profiler/...", "a paper's figure predicts and measures models"},
	{"papers/...", "internal/runtime/fake", "a paper's implementation is the data plane with workers that sleep"},
	{"internal/engine/journal", "engine", "a journal records what an engine was told and what it decided"},
	{"internal/sim/bounds", "sim/truth", "a bound is about what machines truly do"},
	{"internal/tensor/ops", "tensor", "functions of tensors"},
	{
		"internal/host/functions", "papers/infless/operators",
		"a function is planned in by a prediction before it is measured",
	},
	{"papers/reproduce", "papers/infless/operators", "a paper's figure predicts and measures models"},
	{"internal/planner/*", "policy/plan", "a planner makes a plan"},
	{"papers/*", "policy/plan", "a planner makes a plan"},
	{"papers/*/rules", "policy/...", "a rule meets its port"},
	{"papers/*", "internal/planner/*", "what planners share (sharedByPlanners)"},
	{"papers/...", "papers/reproduce", "the frame of all figures"},
	{"internal/policy/priced", "policy/...", "a router meets the port"},
	{"internal/measure/bound", "serving/pipeline", "the stages of a graph share the time of a query"},
}

// ban says that packages matching from may not import packages matching one of to, wherever they stand.
type ban struct {
	from   []string
	to     []string // patterns; a standard or foreign import path is matched as it is, ours without the module's path
	except []string // patterns of to that are allowed
	self   bool     // whether the importer's own folder and those below it are allowed
	why    string
}

var bans = []ban{
	{
		from: []string{"internal/algo/..."}, to: []string{ours}, except: []string{"internal/algo/..."},
		why: "an algorithm is tested against textbooks and brute force, so it speaks of matrices and graphs, never " +
			"of queries",
	},
	{
		from: []string{"serving/..."}, to: slices.Concat(rules, planners, []string{"engine/..."}),
		why: "state does not know who decides on it",
	},
	{
		from: planners, to: slices.Concat(planners, []string{"policy/route", "policy/batch", "policy/scale"}),
		except: sharedByPlanners, self: true,
		why: "no silos and no shortcuts: what two planners share moves down to algo or serving/profile, or to a room " +
			"of internal/planner that is listed in sharedByPlanners when it is about plans",
	},
	{
		from: []string{"policy/plan"}, to: slices.Concat(rules, planners), self: false,
		why: "a plan is plain data that every rule reads; it knows no planner and no rule",
	},
	{
		from: []string{"policy/route", "policy/batch", "policy/scale"},
		to:   slices.Concat(rules, planners), except: []string{"policy/plan"},
		why: "any router must work with any batcher and scaler; what they share is the plan",
	},
	{
		from: []string{"papers/*/rules"}, to: slices.Concat(rules, planners),
		except: []string{"policy/..."}, self: true,
		why: "a paper's rules meet the ports and know no planner, so that any of them works with any other",
	},
	{
		from: []string{"engine/..."}, to: append([]string{"internal/systems/..."}, planners...),
		why: "the engine knows ports only; a composition is handed to it",
	},
	{
		from: []string{"internal/systems"}, to: []string{"sim/...", "dataplane/...", "internal/config/..."},
		why: "a composition must mean the same in the simulator and on the real clock",
	},
	{
		from: []string{"sim/truth"}, to: []string{"serving/profile"},
		why: "what simulated machines do and what planners believe stay apart, else every experiment confirms " +
			"itself; " +
			"measured tables that both start from are plain data in serving",
	},
	{
		from: []string{"sim/..."}, to: []string{"dataplane/..."},
		why: "the two drivers are blind to each other; what both need belongs to the engine",
	},
	{
		from: []string{"dataplane/..."}, to: append([]string{"sim/...", "k8s.io/...", "sigs.k8s.io/..."}, adapters...),
		why: "the data plane defines small interfaces and adapters meet them",
	},
	{
		from: adapters, to: slices.Concat(rules, planners, []string{"engine/..."}),
		why: "adapters do not decide",
	},
	{
		from: []string{"internal/api/oip/..."}, to: slices.Concat(rules, planners, []string{"engine/..."}),
		why: "a codec turns bytes into messages for client and server alike; it knows nothing of scheduling",
	},
	{
		from: product, to: []string{"papers/..."},
		why: "the default system depends on no paper: what both need belongs to the product, and only " +
			"internal/systems says which systems of papers can be chosen",
	},
	{
		from: []string{"..."}, to: []string{"k8s.io/...", "sigs.k8s.io/..."},
		why: "Kubernetes is a heavy dependency that only operator carries",
	},
	{
		from: []string{"..."}, to: []string{"github.com/yalue/onnxruntime_go"},
		why: "ONNX Runtime is one process-wide native library; only internal/runtime/onnx loads it and orders its " +
			"start and end",
	},
}

// unbanned names the imports that are exempt from a ban. Those of papers have reasons. One that no package has any more
// must go.
var unbanned = []edge{
	{"internal/runtime/onnx", "github.com/yalue/onnxruntime_go", ""},

	{"internal/sim/experiment", "papers/kairos", "a trial compares the pools that Kairos' planner asks about"},
	{"internal/sim/experiment", "papers/ramsis", "a case may be given policies that were made before"},
	{"internal/host", "papers/ramsis", "policies that were made are kept between runs"},
	{"internal/host/policies", "papers/ramsis", "policies are made, described and verified"},
	{"internal/host/planning", "papers/kairos", "machines to rent or buy are chosen among pools"},
	{"internal/host/planning", "papers/proteus", "a frontier of plans is drawn, a demand not carried explained"},
	{"internal/host/measuring", "papers/infless/operators", "models are predicted by their operators"},
	{"internal/host/server", "papers/infless/operators", "a function is predicted before it is measured"},
	{"internal/host/functions", "papers/infless/operators", "a function is predicted before it is measured"},
}

const whyPure = "floors 0 to 4 are one pure state machine and its parts: facts and now go in, decisions come out, " +
	"and the same code runs on a virtual and on the real clock"

// impure lists the standard packages that floors 0 to 4 may not import.
var impure = []string{
	"os/...", "net/...", "log/...", "sync/...", "io/fs", "io/ioutil", "path/filepath", "syscall/...", "runtime/...",
	"crypto/rand", "testing/...", "expvar",
}

// limited lists, for packages that floors 0 to 4 may import, the only names they may use.
var limited = map[string]struct {
	names []string
	why   string
}{
	"time": {
		[]string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "ParseDuration"},
		"deciding code never reads a clock; drivers pass serving.Time, and package time serves for Duration only",
	},
	"math/rand": {
		[]string{"Rand", "Source", "Source64", "Zipf", "New", "NewSource", "NewZipf"},
		"the package's functions draw from a hidden global source; pass a seeded *rand.Rand so that a run can be " +
			"repeated",
	},
	"math/rand/v2": {
		[]string{"Rand", "Source", "Zipf", "PCG", "ChaCha8", "New", "NewPCG", "NewChaCha8", "NewZipf"},
		"the package's functions draw from a hidden global source; pass a seeded *rand.Rand so that a run can be " +
			"repeated",
	},
}

// ports are the packages whose interfaces the engine calls. It may use their types, but constructing a rule names it.
var ports = []string{"policy/route", "policy/batch", "policy/scale", "policy/plan"}

const whyPorts = "the engine knows ports only; which rule stands behind one is said in systems"
