package server

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Service is the interface of the program behind the front ends. An app is the protocol's model; its variants can be
// pinned by model_version. Its methods must be safe for concurrent use.
type Service interface {
	// Ready reports whether the server as a whole takes queries. It stays true while a variant loads.
	Ready() bool
	// Unready says what keeps Ready from being true.
	Unready() string
	// Models lists all models, in a fixed order.
	Models() []*Model
	// Lookup returns the model with the given name.
	Lookup(name string) (*Model, bool)
	// ModelReady reports whether a model, or one version of it, can answer now; version is "" for any.
	ModelReady(m *Model, version string) bool
	// Reason says why a model, or one version of it, cannot answer now; "" when it can.
	Reason(m *Model, version string) string
	// Chain returns what answers queries, with the links of the front ends in it. It is called once, by New.
	Chain(front Links) Infer
	// Load and Unload load and unload a model (repository extension).
	// members asks to unload the models that the model is made of, too.
	Load(ctx context.Context, name string, how Loading) error
	Unload(ctx context.Context, m *Model, members bool) error
	// Unused lists the models that lie in the repository and were never loaded.
	Unused() []string
	// Statistics returns the counters of a model's versions.
	Statistics(m *Model) []VersionStatistics
}

// Model is an app as clients see it.
type Model struct {
	Name string
	App  serving.AppID
	// Generation is that of App, and of a variant in Version: see serving.App.
	Generation uint32
	Platform   string // onnxruntime_onnx, or Ensemble
	Versions   []Version
	// Family is all versions of the model that run apart from each other, the one that answers who names none first.
	// They have one name, and tensors of their own. Nil when this is the only one.
	Family []*Model
	Former []Version // replaced ones, which may answer until their successor is ready; they cannot be pinned
	// Earlier are the variants of a pipeline's stages before the last. One of them may end last. They cannot be pinned.
	Earlier []Version
	// with the batch dimension, -1, first when Batched; nil when unknown: then requests are not checked
	Inputs   []tensor.Spec
	Outputs  []tensor.Spec
	Optional []tensor.Spec // inputs that a request may have for all its items together; metadata do not list them
	// Length is what the length of a query is: that of the first variant that has one. Nil where none has.
	Length   *tensor.Length
	Batched  bool // the first dimension counts items
	MaxBatch int  // most items of one request
	// Whole says that a request is one item all the same, and MaxBatch bounds its rows.
	Whole bool
	// Plain says that clients are shown no batch dimension: the first one is one of the tensors' own.
	Plain bool
	// Config is the model's config.pbtxt, or nil. It is not changed.
	Config *triton.ModelConfig
	// Unloaded is set for a model that a client has unloaded. It has no app, and is loaded again when a client asks.
	Unloaded bool
	// Failed says why the model cannot be served at all; "" for one that can. Such a model has no app.
	Failed string
	// FailedKind is the kind of that reason, for metrics.
	FailedKind string
	// Labels are the names of the classes of outputs that have some, by output and then by class.
	Labels map[string][]string
}

// OfONNX is the platform of models in ONNX files, as Triton calls it.
const OfONNX = "onnxruntime_onnx"

// Ensemble is the platform of apps of several stages, as Triton calls its pipelines.
const Ensemble = "ensemble"

// backend is the backend in Triton's model configuration, "" for a pipeline.
func (m *Model) backend() string {
	if m.Platform == Ensemble {
		return ""
	}
	return "onnxruntime"
}

// Version is a variant as clients see it: they may pin it by its version or by its name.
type Version struct {
	Variant  serving.VariantID
	Name     string
	Version  string // a decimal number, unique in the model: serving.Spec.ClientVersion
	Accuracy float64

	Generation uint32
}

// VersionStatistics are counters since the start, of Triton's statistics extension. Times are in nanoseconds.
type VersionStatistics struct {
	Model                              string // of a step of the model; "" for the model itself
	Version                            string
	LastInference                      int64 // ms since 1970
	InferenceCount, ExecutionCount     uint64
	Success, SuccessNS, Fail, FailNS   uint64
	Queue, QueueNS, Compute, ComputeNS uint64
	Batches                            []BatchStatistics // by batch size, ascending
}

// BatchStatistics are the counters of one batch size.
type BatchStatistics struct {
	Size      uint64
	Count, NS uint64
}

// shownBatched reports whether clients see a batch dimension.
func (m *Model) shownBatched() bool { return m.Batched && !m.Plain }

// Decoupled reports whether the model gives any number of answers to a request.
func (m *Model) Decoupled() bool { return m.Config.GetModelTransactionPolicy().GetDecoupled() }

// Pin returns the variant that a requested model_version names, by number or by name; serving.None for "".
func (m *Model) Pin(version string) (serving.VariantID, bool) {
	v, ok := m.pin(version)
	return v.Variant, ok
}

func (m *Model) pin(version string) (Version, bool) {
	if version == "" {
		return Version{Variant: serving.None}, true
	}
	for _, v := range m.Versions {
		if v.Version == version || v.Name == version {
			return v, true
		}
	}
	return Version{Variant: serving.None}, false
}

// All returns the model's versions that run apart from each other, the one that answers who names none first. It is
// shared: do not change it.
func (m *Model) All() []*Model {
	if m.Family == nil {
		return []*Model{m}
	}
	return m.Family
}

// withVersion returns that of the model and its other versions which a requested model_version names; the model itself
// for "".
func (m *Model) withVersion(version string) (*Model, bool) {
	for _, x := range m.All() {
		if _, ok := x.Pin(version); ok {
			return x, true
		}
	}
	return nil, false
}

// allVersions returns the versions of the model and of its other versions, by rising number.
func (m *Model) allVersions() []Version {
	var out []Version
	for _, x := range m.All() {
		out = append(out, x.Versions...)
	}
	slices.SortStableFunc(out, func(a, b Version) int {
		x, _ := strconv.ParseInt(a.Version, 10, 64)
		y, _ := strconv.ParseInt(b.Version, 10, 64)
		return cmp.Compare(x, y)
	})
	return out
}

// Version returns the version of a variant.
func (m *Model) Version(v serving.VariantID) (Version, bool) {
	for _, list := range [][]Version{m.Versions, m.Former, m.Earlier} {
		for _, x := range list {
			if x.Variant == v {
				return x, true
			}
		}
	}
	return Version{}, false
}
