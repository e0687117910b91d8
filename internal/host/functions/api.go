package functions

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/models/repository"
)

// Paths of the admin port.
const (
	PathModels    = "/v1/models/"    // PUT and HEAD with a SHA-256 sum in hexadecimal
	PathFunctions = "/v1/functions/" // GET all, or with a name GET, PUT, DELETE; GET with a name and /logs
	PathReload    = "/reload"        // POST has the configuration file read anew
)

// Reloaded is what came of a configuration file that was read anew: the apps that it changes. The others stay.
type Reloaded struct {
	Apps []AppChange `json:"apps"`
}

// AppChange is what a configuration file that was read anew does to an app.
type AppChange struct {
	App    string `json:"app"`
	Change string `json:"change"`
	Error  string `json:"error,omitempty"` // why the app stays as it was
}

// The changes of apps.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Deployment is a client's request to deploy a model under the name in the path. The model must have been sent before.
type Deployment struct {
	Model string `json:"model_sha256,omitempty"`
	// Chain is the text of a chain.yaml, instead of everything else but TimeoutMS.
	Chain string `json:"chain,omitempty"`
	// Python says that the model is a file of Python, and Class which of its classes; "" is its only one.
	Python       bool              `json:"python,omitempty"`
	Class        string            `json:"class,omitempty"`
	LatencyMS    float64           `json:"latency_ms,omitempty"`
	Percentile   float64           `json:"percentile,omitempty"`
	MaxBatch     int               `json:"max_batch,omitempty"`
	MemoryBytes  int64             `json:"memory_bytes,omitempty"`
	MinInstances int               `json:"min_instances,omitempty"`
	MaxInstances int               `json:"max_instances,omitempty"`
	ColdWaitMS   float64           `json:"cold_wait_ms,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// Profile says how the server gets the model's latency: Measure, which "" means, or Predict.
	Profile string `json:"profile,omitempty"`
	// TimeoutMS is how long the deployment may take, measuring and planning included; 0 means DefaultTimeout.
	TimeoutMS float64 `json:"timeout_ms,omitempty"`
}

// timeout is how long the deployment may take.
func (d *Deployment) timeout() time.Duration {
	if d.TimeoutMS > 0 && d.TimeoutMS <= maxMS {
		return span(d.TimeoutMS)
	}
	return DefaultTimeout
}

// The ways to get a model's latency for a deployment.
const (
	Measure = "measure" // by running it, before it is ready
	Predict = "predict" // by its operators; it is measured later, when nothing is served
)

// The sources of a function's latency profile.
const (
	ByMeasuring  = "measured"
	ByPrediction = "predicted"
)

// States of a function.
const (
	Deploying = "deploying" // its first version is being measured and planned
	Planning  = "planning"  // its instances are being planned
	Starting  = "starting"  // its version is being loaded
	Ready     = "ready"     // its version answers
	Idle      = "idle"      // it has no instance and gets one when it is called
	Failing   = "failing"   // its version could not be loaded recently
)

// Status is a function as clients see it.
type Status struct {
	Name         string            `json:"name"`
	Version      int               `json:"version"`
	State        string            `json:"state"`
	Instances    int               `json:"instances"` // that are ready
	Deployed     time.Time         `json:"deployed"`
	Model        string            `json:"model_sha256"`
	ModelBytes   int64             `json:"model_bytes"`
	Functions    []string          `json:"functions,omitempty"` // of a chain
	LatencyMS    float64           `json:"latency_ms"`
	Percentile   float64           `json:"percentile"`
	MaxBatch     int               `json:"max_batch"`
	MinInstances int               `json:"min_instances,omitempty"`
	MaxInstances int               `json:"max_instances,omitempty"`
	ColdWaitMS   float64           `json:"cold_wait_ms,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// ByMeasuring or ByPrediction; empty where latency is learned
	Profile string `json:"profile,omitempty"`
	// PredictionError is the error of predicted latencies, as a share of those measured later; null unless there are
	// both.
	PredictionError *float64 `json:"prediction_error,omitempty"`
	// Deploying is the deployment of the next version; null when none is under way. LastFailure says why the last one
	// failed, if it did.
	Deploying   *Progress `json:"deploying,omitempty"`
	LastFailure string    `json:"last_failure,omitempty"`
}

// Progress is a deployment that is under way: when it began, and when it is given up.
type Progress struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Event is an event of a function, such as a cold start.
type Event struct {
	Seq   uint64    `json:"seq"` // number of the event, from 1 over all functions
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
	Count int       `json:"count"` // occurrences in a row; At is the last one
}

// Bounds on the fields of a deployment.
const (
	maxInstances = 10_000
	maxLabels    = 64
	maxLabel     = 256 // bytes of a name or a value
	maxMS        = 86_400_000
)

var className = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)

// checkShared checks what deployments of every kind have, which is function or chain.
func (d *Deployment) checkShared(name, kind string) error {
	if err := repository.CheckName(name); err != nil || len(name) > 200 {
		return oip.Errorf(oip.Invalid, "name", "%.80q cannot be a %s's name: want at most 200 bytes that can be a "+
			"file's name", name, kind)
	}
	if !(d.TimeoutMS >= 0 && d.TimeoutMS <= maxMS) {
		return oip.Errorf(oip.Invalid, "timeout_ms", "is %v, want 0 for %v, or up to %d", d.TimeoutMS, DefaultTimeout,
			maxMS)
	}
	return nil
}

// record checks a deployment and makes the record of the store from it.
func (d *Deployment) record(name string) (store.Function, error) {
	bad := func(field, format string, args ...any) (store.Function, error) {
		return store.Function{}, oip.Errorf(oip.Invalid, field, format, args...)
	}
	if err := d.checkShared(name, "function"); err != nil {
		return store.Function{}, err
	}
	switch {
	case !(d.LatencyMS > 0 && d.LatencyMS <= maxMS):
		return bad("latency_ms", "is %v, want more than 0 and at most %d", d.LatencyMS, maxMS)
	case !(d.Percentile > 0 && d.Percentile <= 100):
		return bad("percentile", "is %v, want more than 0 and at most 100", d.Percentile)
	case d.MaxBatch < 0 || d.MaxBatch > repository.MaxMaxBatch:
		return bad("max_batch", "is %d, want 0 to %d", d.MaxBatch, repository.MaxMaxBatch)
	case d.MemoryBytes < 0:
		return bad("memory_bytes", "is %d, want at least 0", d.MemoryBytes)
	case d.MinInstances < 0 || d.MinInstances > maxInstances:
		return bad("min_instances", "is %d, want 0 to %d", d.MinInstances, maxInstances)
	case d.MaxInstances < 0 || d.MaxInstances > maxInstances || d.MaxInstances > 0 && d.MinInstances > d.MaxInstances:
		return bad("max_instances", "is %d, want 0 for no bound, or min_instances to %d", d.MaxInstances, maxInstances)
	case !(d.ColdWaitMS >= 0 && d.ColdWaitMS <= maxMS):
		return bad("cold_wait_ms", "is %v, want 0 to %d", d.ColdWaitMS, maxMS)
	case d.Profile != "" && d.Profile != Measure && d.Profile != Predict:
		return bad("profile", "is %.40q, want %s or %s", d.Profile, Measure, Predict)
	case d.Class != "" && (!d.Python || !className.MatchString(d.Class)):
		return bad("class", "is %.40q, want the name of a class, with python", d.Class)
	case len(d.Labels) > maxLabels:
		return bad("labels", "lists %d, want at most %d", len(d.Labels), maxLabels)
	}
	for k, v := range d.Labels {
		if unprintable(k) || unprintable(v) {
			return bad("labels", "%.40q: want at most %d bytes without control characters", k, maxLabel)
		}
	}
	return store.Function{Name: name, Model: store.Model{SHA256: d.Model}, Python: d.Python, Class: d.Class,
		Latency: span(d.LatencyMS), Percentile: d.Percentile, MaxBatch: d.MaxBatch, Memory: d.MemoryBytes,
		Least: d.MinInstances, Most: d.MaxInstances, ColdWait: span(d.ColdWaitMS), Labels: d.Labels}, nil
}

func unprintable(s string) bool {
	return len(s) > maxLabel || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd
	})
}

func span(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// VariantName returns the name of the variant that is a version of a function.
func VariantName(name string, version int) string { return fmt.Sprintf("%s-v%d", name, version) }
