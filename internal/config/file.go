package config

// The structs of this file are the one place where a setting is declared. Its comment is its sentence on the page and
// in the JSON Schema, its tags say the rest: yaml is the key, resource the field of a resource of Kubernetes (package
// internal/host/resources) or - where a resource says it in another way, default what holds where the
// file says nothing, and range what is allowed (see ranges).

// File is a whole sluice.yaml.
//
// The comments of this file's types are the reference manual: docs/configuration.md is made from them.
type File struct {
	// Version of this format. Always 1. Required.
	Version int `yaml:"version" resource:"-"`
	// DeviceTypes lists the kinds of machine there are. Required.
	DeviceTypes []DeviceType `yaml:"device_types"`
	// Workers lists the machines, or groups of equal machines. Required.
	Workers []Worker `yaml:"workers"`
	// Models says where models come from.
	Models Models `yaml:"models"`
	// Profiles lists profile files as `sluice profile` writes them, relative to this file. Later files win where two
	// measure the same thing. Default: none.
	Profiles []string `yaml:"profiles" resource:"-"`
	// System says how queries are routed and batched in every app that does not choose for itself.
	// Default: `sluice`.
	System System `yaml:"system"`
	// Store is a folder in which deployed functions are kept, relative to this file; `sluice deploy` needs it
	// (docs/functions.md). Default: none, the server runs what this file lists.
	Store string `yaml:"store"`
	// Apps lists what clients call. Required unless there is a store.
	Apps []App `yaml:"apps"`
	// Placement lists the instances to run. One that is impossible is an error. Default: on every worker one instance
	// for each stage of each app, with all of the stage's variants that are fast enough there and fit into its memory,
	// and the worker's cores shared equally. Where memory does not hold all, every stage first gets one variant: the
	// one that serves most of its demand within its accuracy_floor. Then come copies for the demand, then accuracy,
	// then the rest. The first variant is active; where the system's batcher chooses none, the most accurate one that
	// carries the apps' demand is. Systems with a planner of their own do not look at it.
	Placement []Placement `yaml:"placement"`
	// Server says where and how clients are answered.
	Server Server `yaml:"server"`
	// Access says who may call (docs/security.md). Default: everybody may read and infer, and whoever shows the token
	// of server.admin_token may do all.
	Access Access `yaml:"access"`
	// Tenants lists the parties that share the server. While an app's machine time is short each gets its share of it,
	// by weight. Callers without a tenant have that named `default`, if it is listed. Default: none, all queries are
	// alike.
	Tenants []Tenant `yaml:"tenants" resource:"tenants"`
	// Telemetry says what is logged and recorded.
	Telemetry Telemetry `yaml:"telemetry"`

	name  string          // for messages
	dir   string          // that relative paths start from
	lines map[string]int  // line by path of every field in the file
	whole map[string]bool // models that are known not to batch; see WithWhole
}

// DeviceType is a kind of machine, or a share of one.
type DeviceType struct {
	// Name by which workers refer to it. Required.
	Name string `yaml:"name" resource:"name"`
	// PricePerHour is what one machine costs, in $/h. Default: 0.
	PricePerHour float64 `yaml:"price_per_hour" range:"0..1e12" resource:"pricePerHour"`
	// Tenure says whether leaving a machine idle saves its price: `owned` machines are there anyway, `rented` ones are
	// paid for while they are used. Default: they count as owned, but systems whose paper rents every machine
	// (`kairos`, `scrooge` and their kin) keep its rule.
	Tenure string `yaml:"tenure" oneof:"owned rented" resource:"tenure"`
	// Cores is the number of threads a machine, or a part of one, can run at once.
	Cores int `yaml:"cores" default:"1" range:"1.." resource:"cores"`
	// Memory is what the loaded variants of one machine may need together, such as `8GiB`. Default: not limited.
	Memory Size `yaml:"memory" resource:"memory"`
	// Most is how many machines of the type can be rented when machines are chosen under a budget (`sluice plan
	// --budget`). Default: not limited.
	Most int `yaml:"most" range:"1.." resource:"most"`
	// Accelerators is how many accelerators a machine has. Default: 0. Where models run on them, memory is that of the
	// accelerators.
	Accelerators int `yaml:"accelerators" range:"0..1024" resource:"-"`
	// Part says that this is no machine but a share of one, which an instance gets for itself: cores of its threads,
	// percent of one of its accelerators, and memory. It has latencies of its own, which `sluice profile` measures and
	// profiles list under its name, and no worker is of such a type. Systems that pack (`infless` and others) give
	// instances parts wherever there is room. Default: false.
	Part bool `yaml:"part" resource:"-"`
	// Percent of one accelerator that a part takes, 0 to 100. Default: 0.
	Percent int `yaml:"percent" range:"0..100" resource:"percent"`
}

// Worker is a machine, or a group of equal machines.
type Worker struct {
	// Name of the machine. A group of n machines is called NAME-0 to NAME-(n-1). Required.
	Name string `yaml:"name" resource:"-"`
	// DeviceType is the name of one of device_types that is not a part. Default: the only one there is.
	DeviceType string `yaml:"device_type" resource:"-"`
	// Count is the number of machines.
	Count int `yaml:"count" default:"1" resource:"-"`
	// Backend says what runs the models.
	Backend Backend `yaml:"backend"`
	// Accelerators names those that the worker has, as `sluice devices` lists them: by index or UUID. The machines of a
	// group take them in order. Default: the next ones that no worker has, as many as its device type says.
	Accelerators []string `yaml:"accelerators"`
}

// Backend says what runs the models of a worker.
type Backend struct {
	// Kind is `onnx` (ONNX Runtime in this process), `python` (models in Python alone, in processes of their own),
	// `openinference` (a server that speaks the Open Inference Protocol v2 over gRPC, such as Triton), `supplied` (the
	// same, on a machine that is had when a plan needs it and given back after) or `fake` (no model: waits and echoes,
	// for tests). Variants in Python run on workers of every kind; on a `fake` one they are fake, too, and on a
	// `supplied` one its server runs them.
	Kind string `yaml:"kind" oneof:"onnx python openinference supplied fake" default:"onnx" resource:"-"`
	// Interpreter runs the variants in Python: Python 3.9 or newer with numpy. Default: `SLUICE_PYTHON` of the
	// environment, an active virtual environment's, `python3`, or `/usr/bin/python3`, the first that has numpy.
	Interpreter string `yaml:"interpreter"`
	// VirtualEnvironment is the folder of a virtual environment whose interpreter runs them, relative to this file.
	// Instead of interpreter.
	VirtualEnvironment string `yaml:"virtual_environment"`
	// Environment is added to the environment of their processes. Of the server's they have what Python, CUDA and
	// numerical libraries look for.
	Environment map[string]string `yaml:"environment"`
	// Processes is how many an instance has for each variant in Python. Default: one for each of its slots.
	Processes int `yaml:"processes" range:"1..256"`
	// SpareProcesses is how many processes wait on this worker with the frameworks imported that its models in Python
	// use, such as PyTorch: a model that is loaded, and one whose process has died, starts in one of them. Each takes
	// the memory of its frameworks, which plans leave free of that of the device type. Default: 0.
	SpareProcesses int `yaml:"spare_processes" range:"0..16"`
	// ProcessMemory is what such a process may take, together with those that it starts. One that takes more is
	// replaced after its batch, one that takes half as much again at once. Default: not limited.
	ProcessMemory Size `yaml:"process_memory" range:"1MiB.."`
	// RunTimeout is how long such a process may run a batch before it is replaced; the queries of the batch then run
	// one by one. Default: the server's bound for all models, after which the instance counts as lost.
	RunTimeout Duration `yaml:"run_timeout" range:">0s.."`
	// Address is the HOST:PORT of an `openinference` server. Required there, an error elsewhere. A worker that counts
	// more than one needs a list in addresses instead.
	Address string `yaml:"address"`
	// Addresses lists one HOST:PORT for each worker of a group, in their order.
	Addresses []string `yaml:"addresses"`
	// TLS encrypts the connection to an `openinference` server. Default: false.
	TLS bool `yaml:"tls"`
	// CA is a file of PEM certificates to trust instead of the system's, with tls.
	CA string `yaml:"ca"`
	// Protocol of an `openinference` server: `v2`, over gRPC, or `v1`, the REST protocol of TensorFlow Serving and
	// KServe, whose address is that of HTTP. A model of a server without metadata, such as one of KServe, needs the
	// outputs of its app or stage written here.
	Protocol string `yaml:"protocol" oneof:"v1 v2" default:"v2" resource:"-"`
	// LoadModels asks an `openinference` server to load and unload models. Default: false, they must be loaded already.
	LoadModels bool `yaml:"load_models" resource:"-"`
	// Command starts the machine of a `supplied` worker, as a process on this computer: a program and its arguments.
	// `{port}` stands for a free port, on which the process has to serve the protocol over gRPC at 127.0.0.1, with
	// models loaded and unloaded as asked, and `{worker}` for the worker's name. Default: none, the program that embeds
	// sluice, such as its Kubernetes operator, supplies machines.
	Command []string `yaml:"command"`
	// Linger is how long a `supplied` machine is kept after its last instance. Default: 30s.
	Linger Duration `yaml:"linger"`
	// Providers lists execution providers of ONNX Runtime for an `onnx` backend, `cuda` and `cpu`, the preferred one
	// first. The first is used that the library has and that starts; where it is another, the log says so. `cuda` needs
	// a library built with CUDA (docs/accelerators.md). Default: `[cpu]`.
	Providers []string `yaml:"providers" oneof:"cuda cpu"`
	// ProviderOptions are options of the `cuda` provider, such as `gpu_mem_limit`, by the names of ONNX Runtime's
	// documentation. Default: none.
	ProviderOptions map[string]string `yaml:"provider_options"`
	// PinCores binds the runs of instances with cores of their own, such as those on parts, to as many processors of
	// this computer, which no other instance uses then; for an `onnx` backend, on Linux. An instance for which too few
	// are left runs on any. Default: false.
	PinCores bool `yaml:"pin_cores"`
	// Latency is what one run takes on a `fake` backend. Default: 0s.
	Latency Duration `yaml:"latency"`
	// LatencyPerItem is what each item of a batch adds on a `fake` backend. Default: 0s.
	LatencyPerItem Duration `yaml:"latency_per_item"`
	// LoadTime is how long a variant takes to come up on a `fake` backend. Default: 0s.
	LoadTime Duration `yaml:"load_time"`
	// ErrorRate is the probability in [0, 1] that a batch fails on a `fake` backend. Default: 0.
	ErrorRate float64 `yaml:"error_rate" range:"0..1"`
	// MostItems is the size of the largest batch that a `fake` backend has memory for. Default: 0, no limit.
	MostItems int `yaml:"most_items" range:"0.."`
	// Seed chooses which batches fail on a `fake` backend. Default: 0.
	Seed int64 `yaml:"seed"`
}

// Models says where models come from.
type Models struct {
	// Repository is a directory laid out as Triton lays one out, `MODEL/VERSION/model.onnx`, relative to this file.
	// Required when a worker's backend is `onnx`, unless there are no apps but those of a store.
	Repository string `yaml:"repository" resource:"-"`
	// Control says which models of the repository a running server has: `none`, those that it began with, `poll`,
	// those that lie there, which is looked up every so often, or `explicit`, those that clients have loaded. With
	// `poll` and `explicit` models that no app names are served, too, as apps of their own.
	Control string `yaml:"control" oneof:"none poll explicit" default:"none"`
	// Load lists the models that a server with control `explicit` begins with; `*` is all. Default: none.
	Load []string `yaml:"load"`
	// Poll is how often a server with control `poll` looks for changes.
	Poll Duration `yaml:"poll" default:"15s" range:"100ms.."`
	// Limit is how many models of the repository a server has at most at once. A repository with more is not served,
	// and a model beyond it not loaded; what lies there and is not loaded does not count.
	Limit int `yaml:"limit" default:"2000" range:"1..100000"`
}

// System is either a whole system by its name, or a router and a batcher. A plain text is short for its name.
type System struct {
	// Name of a system; `sluice systems` lists them.
	Name string `yaml:"name" resource:"system"`
	// Router is the rule that gives queries to instances. With batcher, instead of name.
	Router string `yaml:"router"`
	// Batcher is the rule that forms batches. With router, instead of name.
	Batcher string `yaml:"batcher"`
	// Planner is what decides which instances to run. Default: the system's own, or `static` for a router and a
	// batcher.
	Planner string `yaml:"planner"`
	// Scaler is what decides when to plan again. Default: the system's own, or `fixed` for a router and a batcher.
	Scaler string `yaml:"scaler"`
	// Batch is the size that the batcher `fixed` fills. Default: the batch limit of the instance.
	Batch int `yaml:"batch" range:"1.."`
	// Timeout is how long the batcher `filltimeout` lets the first query of a batch wait. Default: the objective less
	// the run time.
	Timeout Duration `yaml:"timeout"`
	// Slack is kept free before every deadline, for what profiles do not know of: network, scheduling, noise. Default:
	// 0s; a running server then learns how late its timers and hand-overs are, and starts batches that fill up earlier
	// by that.
	Slack Duration `yaml:"slack"`
	// Late is the late policy of apps that do not give their own: `drop` or `serve-late`. Default: `drop`, and
	// `serve-late` for apps with a proposed objective.
	Late string `yaml:"late" oneof:"drop serve-late" resource:"-"`
	// Replan is how often plans are made, or the least time between two plans for scalers that plan when something has
	// changed. Default: the system's own.
	Replan Duration `yaml:"replan" resource:"replan"`
	// Budget is the most that a plan may cost, in $/h, for planners that rent. Default: not limited.
	Budget float64 `yaml:"budget" range:"0..1e12" resource:"budget"`
	// Options are further settings of the system's components. docs/options.md lists them all, `sluice systems NAME`
	// those of one system. One that no component of the system reads is an error.
	Options map[string]string `yaml:"options" resource:"options"`
}

// App is what clients call: its name is the model name of the Open Inference Protocol.
type App struct {
	// Name that clients use. Required.
	Name string `yaml:"name" resource:"-"`
	// VersionOf is the app of which clients see this one as a version, under the number of its model's directory; it
	// then has no name of its own for them. Both have variants and no stages. Default: none.
	VersionOf string `yaml:"version_of"`
	// SLO is the latency objective. Required.
	SLO SLO `yaml:"slo" resource:"objective"`
	// Late says what happens to a query that can no longer be on time: `drop` answers with an error at once,
	// `serve-late` serves it all the same. Default: the system's; when that does not say, `serve-late` where the
	// objective is proposed, else `drop`.
	Late string `yaml:"late" oneof:"drop serve-late" resource:"late"`
	// GiveUp is how long after its deadline a query may still start when late is `serve-late`; then it is dropped.
	// Default: 0s, which never gives up.
	GiveUp Duration `yaml:"give_up"`
	// ColdWait is how long after its arrival a query may still start that found nothing ready, where the scaler lets
	// idle apps go (`ratebands`): starting a model takes longer than most objectives allow. Such queries
	// are answered late. Default: 30s; 0s treats them as any other.
	ColdWait Duration `yaml:"cold_wait" default:"30s"`
	// Weight is the importance of the app relative to the others.
	Weight float64 `yaml:"weight" range:">0..1e12" default:"1" resource:"weight"`
	// AccuracyFloor is the least accuracy of a variant that answers, in [0, 1], whatever the system. A client that asks
	// for a variant by its name gets it all the same, where it is loaded. Default: 0.
	AccuracyFloor float64 `yaml:"accuracy_floor" range:"0..1" resource:"accuracyFloor"`
	// AccuracyTarget is the mean accuracy of the app's answers to keep, from accuracy_floor to that of the most
	// accurate variants; with several stages, their product. Serving in time comes before it, and cost after it.
	// Default: none, as accurate as the machines allow.
	AccuracyTarget float64 `yaml:"accuracy_target" range:"0..1" resource:"accuracyTarget"`
	// MinInstances of each stage are there at the least, even without any calls, for planners that read it: `fluid`
	// (the default system's), `infless` and `static`. Default: 0.
	MinInstances int `yaml:"min_instances" range:"0..10000" resource:"minInstances"`
	// MaxInstances of each stage are there at the most, for `fluid` and `infless`. Default: 0, which sets no limit.
	MaxInstances int `yaml:"max_instances" range:"0..10000" resource:"maxInstances"`
	// Demand in queries/s that the first plan is made for, before any query has been seen. Default: 0, which lets
	// planners begin with the most accurate variants.
	Demand float64 `yaml:"demand" resource:"demand"`
	// Items says how large queries are expected to be, for planners that ask before any was seen. Default: one item
	// each.
	Items Items `yaml:"items"`
	// QueueLimit is how many queries may wait before new ones are refused. No more can wait in vain than come within
	// the objective: an app of 10,000 queries/s with an objective of 2s needs 20,000. Default: 1000, or twice what
	// comes of demand within the objective where that is more.
	QueueLimit int `yaml:"queue_limit" range:"1..1073741824"`
	// Queue sets further limits of the queue of an app of one stage. Default: none.
	Queue *Queue `yaml:"queue"`
	// System serves this app. Default: the file's.
	System *System `yaml:"system"`
	// Variants lists the models that can answer, when the app has one stage. Either variants or stages is required.
	Variants []Variant `yaml:"variants" resource:"variants"`
	// Stages lists the steps of an app that has several. Exactly one of them is fed by no other.
	Stages []Stage `yaml:"stages" resource:"stages"`
	// Whole hands every tensor of a query from step to step as a whole, with its batch dimension, and runs the queries
	// one at a time at every model: for steps of which some batch and others do not. A step's model still refuses more
	// rows than its max_batch. Default: false.
	Whole bool `yaml:"whole"`
	// Ensembles of the model repository that the stages come from, beside the one that the app is: they are loaded with
	// the app, and the app anew when they change. Default: none.
	Ensembles []string `yaml:"ensembles"`
	// Inputs lists the tensors a request carries. Default: what the models in the repository say.
	Inputs []Tensor `yaml:"inputs" resource:"inputs"`
	// Outputs lists the tensors of an answer. Default: what the final stages give, as far as their models are in the
	// repository.
	Outputs []Tensor `yaml:"outputs" resource:"outputs"`
}

// Items is how many items queries bring, as in workload files (docs/workload.md).
type Items struct {
	// Distribution is `constant`, `uniform`, `lognormal`, `gaussian`, `histogram` or `mixture`. Default: `constant`.
	Distribution string `yaml:"distribution"`
	// Value of a `constant` distribution. Default: 1.
	Value int `yaml:"value"`
	// Min is the smallest size of a `uniform` or `gaussian` distribution.
	Min int `yaml:"min"`
	// Max is the largest size of a `uniform`, `lognormal` or `gaussian` distribution.
	Max int `yaml:"max"`
	// Mu is the mean of the logarithm of a `lognormal` distribution.
	Mu float64 `yaml:"mu"`
	// Sigma is the standard deviation of the logarithm of a `lognormal` distribution.
	Sigma float64 `yaml:"sigma"`
	// Mean of a `gaussian` distribution, before it is cut to min and max.
	Mean float64 `yaml:"mean"`
	// Deviation is the standard deviation of a `gaussian` distribution, before it is cut.
	Deviation float64 `yaml:"deviation"`
	// Sizes of a `histogram`.
	Sizes []int `yaml:"sizes"`
	// Weights of the sizes of a `histogram`, or of the parts of a `mixture`.
	Weights []float64 `yaml:"weights"`
	// Parts are the distributions that a `mixture` draws from. They have the same settings.
	Parts []Items `yaml:"parts"`
	// RoundUpTo has every size rounded up to a multiple of it. Default: sizes stay as they are.
	RoundUpTo int `yaml:"round_up_to"`
}

// SLO is a latency objective.
type SLO struct {
	// Latency within which a query is to be answered, such as `50ms`. Required.
	Latency Duration `yaml:"latency" range:">0s.." resource:"latency"`
	// Percentile of the queries that must meet it, in (0, 100].
	Percentile float64 `yaml:"percentile" range:">0..100" default:"99" resource:"percentile"`
	// Proposed says that nobody asked for this latency: it follows from measurements. Answers that take longer are
	// served all the same unless `late` is written, no plan leaves the app out for it, and a running server raises it
	// to what it sees. `sluice config objectives` writes what a server has found. Take it away once the latency is
	// yours. Default: false.
	Proposed bool `yaml:"proposed"`
}

// Stage is one step of an app. docs/pipelines.md explains how tensors get from step to step.
type Stage struct {
	// Name of the step, unique in its app. Required.
	Name string `yaml:"name" resource:"name"`
	// Variants lists the models that can do the step. Either variants or function is required.
	Variants []Variant `yaml:"variants" resource:"variants"`
	// Function does the step without a model, in this process: `argmax`, `constant`, `crop`, `ctc`, `identity`, `nms`,
	// `normalize`, `regions`, `reshape`, `resize`, `threshold`, `topk`, `track` or `window`. Profiles list it under the
	// name of the step.
	Function string `yaml:"function" resource:"function"`
	// With holds the options of the function; docs/builtin.md lists them. A value `@FILE` is what that file has,
	// relative to this one.
	With map[string]string `yaml:"with" resource:"with"`
	// Stateful keeps something from query to query of a stream: the step serves those of one stream one at a time, in
	// the order of their arrival. Default: true for the functions `track` and `window`, false for all others
	// and for models.
	Stateful bool `yaml:"stateful" resource:"stateful"`
	// Inputs says which tensors of the query the inputs of the model or function are. Default: those of the same name.
	Inputs map[string]string `yaml:"inputs" resource:"inputs"`
	// Outputs gives the outputs of the model or function other names in the query. Default: they keep theirs.
	Outputs map[string]string `yaml:"outputs" resource:"outputs"`
	// Queue sets limits of the step's queue. Default: none.
	Queue *Queue `yaml:"queue"`
	// Next lists the steps that this one feeds.
	Next []Edge `yaml:"next" resource:"next"`
}

// Queue sets limits of a queue, as `dynamic_batching` of a Triton model does. They hold whatever the system decides.
type Queue struct {
	// Delay is how long the first of the waiting queries may be held back until enough others have come for a batch.
	// Default: 0s, none is held back.
	Delay Duration `yaml:"delay"`
	// Preferred are numbers of items: when the first of the waiting queries make up one of them, these wait no longer,
	// and when as many as the largest have come, none does. Default: the largest batch that the variants take.
	Preferred []int `yaml:"preferred"`
	// DefaultPriority is the level, from 1, of queries without a priority and of those with a larger one than there are
	// levels. Default: the last.
	DefaultPriority int `yaml:"default_priority"`
	// Levels lists the levels of priority, the first the most important. Default: none, every priority counts.
	Levels []QueueLevel `yaml:"levels"`
}

// QueueLevel sets limits of one level of priority.
type QueueLevel struct {
	// Timeout is how long a query may wait before it starts. Default: 0s, no limit.
	Timeout Duration `yaml:"timeout"`
	// OnTimeout says what happens to a query that has waited for longer: `reject` gives it up, `delay` lets it wait on
	// behind all others of its level. Default: `reject`.
	OnTimeout string `yaml:"on_timeout" oneof:"reject delay"`
	// OwnTimeout lets the timeout of a request take the place of a longer one here. Default: false, where a level
	// sets a timeout those of requests do not count.
	OwnTimeout bool `yaml:"own_timeout"`
	// Limit is how many queries of the level may wait before new ones are refused. Default: 0, only queue_limit counts.
	Limit int `yaml:"limit" range:"0.."`
}

// Edge feeds one stage with the results of another.
type Edge struct {
	// To is the name of the stage that is fed. Required.
	To string `yaml:"to" resource:"to"`
	// FanOut is how many items are expected to be passed on for each item served.
	FanOut float64 `yaml:"fan_out" range:"0..1e6" default:"1" resource:"fanOut"`
	// Rows names the tensor that the stage gives whose rows become the items of the next one: as many as there are.
	// Default: every item is handed on as one.
	Rows string `yaml:"rows" resource:"rows"`
}

// Variant is a trained model that can answer.
type Variant struct {
	// Name of the variant, unique in its app. Default: the model, or the class or file in python.
	Name string `yaml:"name" resource:"name"`
	// Python is a model in Python, relative to this file: `FILE.py` or `FILE.py:CLASS`, or a file or folder that is
	// loaded without a class of one's own: TorchScript (`.pt`), `torch.export` (`.pt2`), scikit-learn (`.joblib`),
	// XGBoost (`.json`, `.ubj`), or a folder as Hugging Face's `save_pretrained` writes it (docs/python.md). Instead of
	// model.
	Python string `yaml:"python" resource:"-"`
	// Options are texts for the class in python. Default: none.
	Options map[string]string `yaml:"options"`
	// Model is its directory in the repository, or its name on a remote server. Default: the variant's name.
	Model string `yaml:"model" resource:"-"`
	// Version is the version directory. Default: the highest one that the model's version policy serves.
	Version string `yaml:"version" resource:"-"`
	// Accuracy in [0, 1]. Default: what `sluice profile --samples` or `--agree` has measured, when the stage has
	// several variants; otherwise 1.
	Accuracy float64 `yaml:"accuracy" resource:"accuracy"`
	// MaxBatch is the largest number of items of one run. Default: the model's own bound; 64 where it has none.
	MaxBatch int `yaml:"max_batch" resource:"maxBatch"`
	// Memory the variant needs when loaded. Default: the size of its model file.
	Memory Size `yaml:"memory" resource:"memory"`
	// ItemMemory is the additional memory of every item of a batch. Default: not known.
	ItemMemory Size `yaml:"item_memory"`
	// Length says what the length of a query is, by which a run takes longer or shorter (docs/lengths.md). Default: the
	// open dimension of the model's inputs beside the items, where they have one name; the product of all open
	// dimensions where one input alone has some.
	Length *Length `yaml:"length"`
	// Mask is the input that is 1 for what is there and 0 for what is padded, of shape [items, length], in a model that
	// runs in this process. Default: `attention_mask`.
	Mask string `yaml:"mask"`
}

// Length is what the length of a query is: the product of some dimensions of an input.
type Length struct {
	// Input is the name of the input. Required.
	Input string `yaml:"input"`
	// Axes are its dimensions, counted from 0, which counts the items of a batch. Required.
	Axes []int `yaml:"axes"`
}

// Tensor describes one input or output.
type Tensor struct {
	// Name of the tensor. Required.
	Name string `yaml:"name" resource:"name"`
	// DataType is the protocol's name of the element type, such as `FP32`. Required.
	DataType string `yaml:"datatype" resource:"dataType"`
	// Shape with -1 for variable dimensions; the first dimension is the batch. Required.
	Shape []int64 `yaml:"shape" resource:"shape"`
}

// Placement is an instance to run, or one on each worker of a group.
type Placement struct {
	// Worker is the name of a worker or of a group. Required.
	Worker string `yaml:"worker"`
	// App whose queries it serves. Default: the only one there is.
	App string `yaml:"app"`
	// Stage of the app. Default: the only one there is.
	Stage string `yaml:"stage"`
	// Variants to load, by name; the first one is active. Default: all variants of the stage.
	Variants []string `yaml:"variants"`
	// Slots is the number of batches that may run at once.
	Slots int `yaml:"slots" default:"1" range:"1..1024"`
	// Cores that a run has for itself. Default: the instances of a worker share it, and take turns; on a worker where
	// others ask for cores, an equal part of those that they leave.
	Cores int `yaml:"cores" range:"0.."`
	// BatchLimit is the largest number of items of a batch. Default: the largest that takes half the objective.
	BatchLimit int `yaml:"batch_limit" range:"0.."`
	// Weight is its part of the stage's traffic relative to the other instances. Default: in proportion to what each
	// can carry. Give it for all instances of a stage or for none.
	Weight float64 `yaml:"weight" range:"0..1e12"`
}

// Server says where and how clients are answered.
type Server struct {
	// HTTP is the HOST:PORT of the Open Inference Protocol over HTTP, or `off`.
	HTTP string `yaml:"http" default:":8000"`
	// GRPC is the HOST:PORT of the Open Inference Protocol over gRPC, or `off`.
	GRPC string `yaml:"grpc" default:":8001"`
	// Admin is the HOST:PORT of metrics, decisions and administration, or `off`. Default: `127.0.0.1:8002`, which only
	// this machine can reach.
	Admin string `yaml:"admin" default:"127.0.0.1:8002"`
	// AdminToken is a file with the token that callers must send to load and unload models, and callers of the admin
	// port to change anything, relative to this file. Only its owner may be able to read it. It is made, with a
	// token in it, where there is none. Default: `admin.token` in the store; without a store the admin port asks for
	// none.
	AdminToken string `yaml:"admin_token"`
	// AdminAnywhere allows an admin address that other machines can reach. A caller who reaches it may read metrics
	// and decisions; changes need the token, so that admin_token is required, or access. Default: false, the address
	// must be of this machine alone.
	AdminAnywhere bool `yaml:"admin_anywhere"`
	// ModelControl lets every client load and unload models over the Open Inference Protocol. Default: false, they must
	// send the token of admin_token, and nobody may where there is none.
	ModelControl bool `yaml:"model_control"`
	// Hosts lists names of this server that callers may use for requests that change something, to the admin address,
	// and from this machine without TLS, as through a proxy beside the server. Its addresses, `localhost` and the
	// machine's own name are allowed anyway. Others are refused: a web site could have its name resolve to this
	// machine. `*` allows all names to queries. Default: none; in a pod of Kubernetes all names to queries.
	Hosts []string `yaml:"hosts"`
	// SharedMemory is the prefix of the names of the shared memory objects that clients on this machine may have
	// tensors read from and written to, such as `/` for all of them or `/sluice-`. Default: none, shared memory is off.
	SharedMemory string `yaml:"shared_memory"`
	// Origins are the origins whose web pages may call over HTTP, such as `https://example.org`, or `*` for all of
	// them. Those pages read and infer; what changes something is refused to them. Default: `[]`.
	Origins []string `yaml:"origins"`
	// Name is the server's name in its metadata: some clients ask for `triton`.
	Name string `yaml:"name" default:"sluice"`
	// States is a folder in which stateful stages keep what they know of their streams, relative to this file, so that
	// streams continue after a restart. Default: none, states are kept in memory only.
	States string `yaml:"states"`
	// Limits bound what clients may ask for.
	Limits Limits `yaml:"limits"`
	// DrainTimeout is how long accepted queries may take to finish after a signal to stop.
	DrainTimeout Duration `yaml:"drain_timeout" default:"30s" range:">0s.."`
	// NotReady is how long the server says that it is not ready, and still answers, after a signal to stop, so that
	// load balancers notice before connections are refused. A second signal ends this time.
	NotReady Duration `yaml:"not_ready" default:"5s"`
	// PublicMetrics has `/metrics` on the HTTP address as well, where whoever may look reads it. Default: false, it is
	// on the admin address alone.
	PublicMetrics bool `yaml:"public_metrics"`
	// Reflection has gRPC describe its services to whoever asks. Default: false.
	Reflection bool `yaml:"reflection"`
	// TLS encrypts HTTP and gRPC.
	TLS TLS `yaml:"tls"`
	// Tracing sends OpenTelemetry spans of requests to a collector.
	Tracing Tracing `yaml:"tracing"`
	// Record keeps the inputs of some requests, for `sluice profile --agree`.
	Record Record `yaml:"record"`
	// Shadow is the part of the queries, from 0 to 1, whose answers are compared with those of the most accurate
	// variant that is loaded. That runs only while no other query waits or runs. Default: 0, none.
	Shadow float64 `yaml:"shadow" range:"0..1"`
}

// Record keeps the inputs of some requests in files, for `sluice profile --agree`. They are clients' data: only the
// server's user may read the files.
type Record struct {
	// Folder to write to, relative to this file, with a folder for each app. Default: none, nothing is recorded.
	Folder string `yaml:"folder"`
	// Share is the part of the requests that is recorded, from 0 to 1.
	Share float64 `yaml:"share" default:"0.01" range:"0..1"`
	// Size is the most bytes that all files may have; the oldest go first.
	Size Size `yaml:"size" default:"256MiB" range:"1KiB.."`
}

// Tracing sends OpenTelemetry spans of requests to a collector. Callers' W3C trace context is continued. Serving never
// waits for the collector: what cannot be delivered is dropped.
type Tracing struct {
	// Endpoint is the collector, such as `http://localhost:4318` (OTLP over HTTP; `https` as well) or
	// `grpc://localhost:4317` (OTLP over gRPC; `grpcs` with TLS). Default: none, tracing is off.
	Endpoint string `yaml:"endpoint"`
	// Sample is the part of the requests that is traced, from 0 to 1, of those whose callers do not decide it in their
	// `traceparent`.
	Sample float64 `yaml:"sample" default:"0.01" range:"0..1"`
	// Headers is a file with headers for the collector, such as for authentication, one `NAME: VALUE` on each line,
	// relative to this file. Default: none.
	Headers string `yaml:"headers"`
}

// Limits bound what clients may ask for.
type Limits struct {
	// Request is the largest request, after decompression.
	Request Size `yaml:"request" default:"64MiB"`
	// Output is the most bytes that the outputs of one query may have: those that the client names, all where it names
	// none.
	Output Size `yaml:"output" default:"64MiB" range:"1.."`
	// Memory is the most that all requests may hold at once: their bodies and tensors, from their arrival to the end of
	// their answer. A request beyond it is refused at once. Default: half of the machine's memory, or of what its
	// control group allows.
	Memory Size `yaml:"memory"`
	// Header is the largest header.
	Header Size `yaml:"header" default:"1MiB" range:"1KiB..64MiB"`
	// Connections is how many may be open at once, of each protocol. Further ones are closed at once, but for some
	// that answer health and metadata.
	Connections int `yaml:"connections" default:"1024" range:"1.."`
	// ConnectionsPerAddress is how many of them one address may have. Default: half of them.
	ConnectionsPerAddress int `yaml:"connections_per_address"`
	// Streams is how many calls may be under way at once on one gRPC connection.
	Streams int `yaml:"streams" default:"4096" range:"1..1048576"`
	// Items is the largest number of inputs in one request.
	Items int `yaml:"items" default:"1024" range:"1..1073741824"`
	// JSON is the largest JSON of a request over HTTP, without the data of its tensors. Default: 1MiB.
	JSON Size `yaml:"json"`
	// Tensors is the largest number of inputs of one request, and of outputs that it asks for.
	Tensors int `yaml:"tensors" default:"256" range:"1..65536"`
	// Parameters is the largest number of parameters of one request, and of each of its tensors.
	Parameters int `yaml:"parameters" default:"256" range:"1..65536"`
	// Elements is the largest number of elements of all tensors of one request that come as JSON or in typed contents.
	// Binary tensors do not count.
	Elements int `yaml:"elements" default:"8388608" range:"1..1073741824"`
	// UnpackRatio is how many times its own size a compressed request may unpack to, once that is more than 1 MiB.
	// Over gRPC the ratio can be raised, not lowered.
	UnpackRatio int `yaml:"unpack_ratio" default:"100" range:"1..1048576"`
	// Rows is the largest number of rows of a tensor that one query may send from stage to stage.
	Rows int `yaml:"rows" default:"1024" range:"1..1048576"`
	// State is the most that a stateful stage may keep of one stream.
	State Size `yaml:"state" default:"1MiB" range:"1..64MiB"`
	// AllStates is the most that all of them take, in memory and also in the folder of states. Those that were not
	// used for longest are forgotten first.
	AllStates Size `yaml:"all_states" default:"256MiB"`
	// Model is the largest model file that may be deployed.
	Model Size `yaml:"model" default:"2GiB" range:"1.."`
	// ReadTimeout is how long a request may take to arrive.
	ReadTimeout Duration `yaml:"read_timeout" default:"30s" range:">0s.."`
	// WriteTimeout is how long a client may take to read the next 64 KiB of an answer.
	WriteTimeout Duration `yaml:"write_timeout" default:"30s" range:">0s.."`
	// StreamIdle is how long a gRPC stream may be without a message.
	StreamIdle Duration `yaml:"stream_idle" default:"10m" range:">0s.."`
	// ConnectionAge is how long a gRPC connection may live; clients then connect anew.
	ConnectionAge Duration `yaml:"connection_age" default:"1h" range:">0s.."`
	// IdleTimeout is how long a connection may be silent between requests.
	IdleTimeout Duration `yaml:"idle_timeout" default:"2m" range:">0s.."`
}

// Access says who may call, and what is written down of it. Files are relative to this file. Where there are keys,
// certificates or tokens, callers of every address must show one, but for health.
type Access struct {
	// Keys is a file of API keys, hashed, as `sluice key` writes them. It is read again when it changes.
	Keys string `yaml:"keys" resource:"-"`
	// Certificates lists callers by the names in their certificates. It needs server.tls.client_ca.
	Certificates []Certificate `yaml:"certificates" resource:"certificates"`
	// JWT takes signed tokens of an issuer, such as an OpenID provider.
	JWT JWT `yaml:"jwt" resource:"jwt"`
	// Anonymous lists what callers may do who show nothing: `look`, `infer`, `deploy` or `administer`. Default: nothing
	// where there are keys, certificates or tokens, else `look` and `infer`.
	Anonymous []string `yaml:"anonymous" oneof:"look infer deploy administer" resource:"anonymous"`
	// Audit is a file that every call that changes something is written to, as JSON lines: who, what, when, result.
	// Once it has 64 MiB it is kept as NAME.1 to NAME.4. Default: those lines are in the server's log.
	Audit string `yaml:"audit"`
	// Log is a file that calls are written to, as JSON lines, bounded like that of audit. Default: none.
	Log string `yaml:"log"`
	// LogEvery is of how many calls one is written to log.
	LogEvery int `yaml:"log_every" default:"100" range:"1.."`
}

// Certificate is a caller with a certificate.
type Certificate struct {
	// Name is a common name, a DNS name or a URI of the certificate. Required.
	Name string `yaml:"name" resource:"name"`
	// Tenant is the name of one of tenants. Default: none.
	Tenant string `yaml:"tenant" resource:"tenant"`
	// Roles lists what the caller may do: `look`, `infer`, `deploy`, `administer`. Required.
	Roles []string `yaml:"roles" oneof:"look infer deploy administer" resource:"roles"`
}

// JWT says which signed tokens are taken.
type JWT struct {
	// Issuer is the claim `iss` of the tokens. Required with the other settings of jwt.
	Issuer string `yaml:"issuer" resource:"issuer"`
	// Audience is what the claim `aud` must name. Required with issuer.
	Audience string `yaml:"audience" resource:"audience"`
	// KeyFile is a file with the issuer's keys, a JSON Web Key Set. It is read again when it changes.
	KeyFile string `yaml:"key_file" resource:"-"`
	// KeyURL is where the issuer publishes its keys, instead of key_file. It is fetched at the start, every hour, and
	// for unknown keys.
	KeyURL string `yaml:"key_url" resource:"keyURL"`
	// TenantClaim is the claim with the caller's tenant. Default: none, callers have no tenant.
	TenantClaim string `yaml:"tenant_claim" resource:"tenantClaim"`
	// RolesClaim is the claim with the caller's roles, as a list or as words: `infer` or `sluice:infer`. Others are
	// not looked at.
	RolesClaim string `yaml:"roles_claim" default:"scope" resource:"rolesClaim"`
	// Roles lists what callers may do whose token lacks the claim. Default: nothing.
	Roles []string `yaml:"roles" oneof:"look infer deploy administer" resource:"roles"`
}

// Tenant is a party that shares the server with others.
type Tenant struct {
	// Name by which keys, certificates and tokens refer to it. Required.
	Name string `yaml:"name" resource:"name"`
	// Weight is its share of machine time, relative to the other tenants, while that is short.
	Weight float64 `yaml:"weight" default:"1" range:">0..1e12" resource:"weight,whole"`
	// Rate is the most queries/s that are taken of it. Further ones are answered with 429. Default: not limited.
	Rate float64 `yaml:"rate" range:"0..1e9" resource:"rate,whole"`
	// Burst is how many queries may come at once beyond rate. Default: those of a second.
	Burst int `yaml:"burst" range:"0..1000000000"`
	// Work is the most items times length that are taken of it in a second: pictures of one size count as their number,
	// texts as their tokens. A query beyond it is answered with 429; a large one is taken while some is left, and the
	// next ones wait for longer. Default: not limited.
	Work float64 `yaml:"work" range:"0..1e15"`
	// Concurrency is how many of its queries may be under way at once. Default: not limited.
	Concurrency int `yaml:"concurrency" range:"0.." resource:"concurrency"`
	// Timeout is the longest timeout that counts of its queries. Default: not limited.
	Timeout Duration `yaml:"timeout"`
	// Priority is the highest (smallest) priority that counts of its queries. Default: 0, its priorities do not count.
	Priority int `yaml:"priority" range:"0..2147483647"`
	// SequenceRate is the highest rate in queries/s that one of its sequences may announce, at most 100000. All of its
	// sequences together announce rate at most. Default: 100000.
	SequenceRate float64 `yaml:"sequence_rate"`
}

// TLS names the files of an encrypted server, relative to this file. They are read again when they change.
type TLS struct {
	// Cert is a PEM file with the certificate chain. With key.
	Cert string `yaml:"cert" resource:"-"`
	// Key is a PEM file with the private key. With cert.
	Key string `yaml:"key" resource:"-"`
	// ClientCA is a PEM file of authorities; clients must then show a certificate of one of them. Default: clients need
	// none.
	ClientCA string `yaml:"client_ca" resource:"-"`
	// ClientOptional lets clients without a certificate connect all the same; they show a key or a token instead. With
	// client_ca. Default: false.
	ClientOptional bool `yaml:"client_optional" resource:"-"`
	// Admin encrypts the admin address in the same way. Default: false.
	Admin bool `yaml:"admin"`
}

// Telemetry says what is logged and recorded.
type Telemetry struct {
	// LogLevel is `debug`, `info`, `warn` or `error`.
	LogLevel string `yaml:"log_level" oneof:"debug info warn error" default:"info"`
	// LogFormat is `text` or `json`.
	LogFormat string `yaml:"log_format" oneof:"text json" default:"text"`
	// Decisions is how many of the latest decisions are kept for explanations.
	Decisions int `yaml:"decisions" default:"65536" range:"0..16777216"`
	// Journal is a file that every input and decision is written to, for replay, relative to this file. Those of the
	// last four runs are kept beside it, as NAME.1 to NAME.4. Default: none.
	Journal string `yaml:"journal"`
	// JournalLimit is the most bytes of the journal. Steps beyond it are counted in sluice_journal_missed_steps_total
	// and not recorded: what is there still replays.
	JournalLimit Size `yaml:"journal_limit" default:"4GiB" range:"1MiB.."`
	// Traces is a folder for files of traced requests, relative to this file. Clients who may load models say which
	// requests (Triton's trace extension), and name the files in it. Default: none, nothing is traced.
	Traces string `yaml:"traces"`
	// History is a file that keeps the latest day of what the dashboard shows, second by second, relative to this file:
	// at most 256 MiB. It survives restarts; each server needs its own. Default: none, the dashboard shows what has
	// happened since the start.
	History string `yaml:"history"`
	// MetricsApps is how many apps have series of their own in /metrics: those that are called first. The others are
	// counted together, as app, variant and model `(other)`.
	MetricsApps int `yaml:"metrics_apps" default:"500" range:"1..100000"`
	// LatencyBuckets are the upper bounds of the latency histograms, ascending. Default: 1ms to 10s in 13 steps.
	LatencyBuckets []Duration `yaml:"latency_buckets"`
}
