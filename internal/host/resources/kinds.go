package resources

// Group and version of the resources.
const apiVersion = "sluice.dev/v1alpha1"

// Meta is a resource's metadata.
type Meta struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
	Labels    Labels `yaml:"labels,omitempty"`
}

// Labels are those that resources are found by.
type Labels struct {
	Function string `yaml:"sluice.dev/function,omitempty"` // LabelFunction
}

// Resource is a resource of any kind.
type Resource struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   Meta   `yaml:"metadata"`
	Spec       any    `yaml:"spec"`
}

// Fields that no setting of a configuration stands for; the table of settings has the others. They are explained in
// operator/api/v1alpha1.
type (
	model struct {
		URI    string `resource:"uri"`
		SHA256 string `resource:"sha256"`
	}
	profile struct {
		Fleet       string    `yaml:"fleet"`
		App         string    `yaml:"app"`
		Stage       string    `yaml:"stage,omitempty"`
		Variant     string    `yaml:"variant"`
		MachineType string    `yaml:"machineType"`
		Model       string    `yaml:"model,omitempty"`
		Load        string    `yaml:"load,omitempty"`
		MemoryBytes int64     `yaml:"memoryBytes,omitempty"`
		Latencies   []latency `yaml:"latencies"`
		Measured    string    `yaml:"measured,omitempty"`
		On          string    `yaml:"on,omitempty"`
	}
	latency struct {
		Batch     int    `yaml:"batch"`
		Mean      string `yaml:"mean"`
		P95       string `yaml:"p95"`
		Deviation string `yaml:"deviation,omitempty"`
		Runs      int    `yaml:"runs,omitempty"`
	}
)
