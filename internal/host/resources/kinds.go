package resources

// Group and version of the resources.
const apiVersion = "sluice.dev/v1alpha1"

// Meta is a resource's metadata.
type Meta struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

// Resource is a resource of any kind.
type Resource struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   Meta   `yaml:"metadata"`
	Spec       any    `yaml:"spec"`
}

// Quantities are decimal numbers as text, such as 0.526 or 16Gi. The fields are explained in operator/api/v1alpha1.
type (
	fleet struct {
		System      string            `yaml:"system"`
		Options     map[string]string `yaml:"options,omitempty"`
		Budget      string            `yaml:"budget,omitempty"`
		Dispatchers int               `yaml:"dispatchers"`
		Replan      string            `yaml:"replan,omitempty"`
		TLS         *fleetTLS         `yaml:"tls,omitempty"`
		Access      *fleetAccess      `yaml:"access,omitempty"`
		Tenants     []tenant          `yaml:"tenants,omitempty"`
	}
	fleetTLS struct {
		Secret         string       `yaml:"secret"`
		ClientCA       *authorities `yaml:"clientCA,omitempty"`
		ClientOptional bool         `yaml:"clientOptional,omitempty"`
	}
	authorities struct {
		ConfigMap string `yaml:"configMap"`
	}
	fleetAccess struct {
		Keys         string        `yaml:"keys,omitempty"`
		Certificates []certificate `yaml:"certificates,omitempty"`
		JWT          *fleetJWT     `yaml:"jwt,omitempty"`
		Anonymous    []string      `yaml:"anonymous,omitempty,flow"`
	}
	certificate struct {
		Name   string   `yaml:"name"`
		Tenant string   `yaml:"tenant,omitempty"`
		Roles  []string `yaml:"roles,flow"`
	}
	fleetJWT struct {
		Issuer      string   `yaml:"issuer"`
		Audience    string   `yaml:"audience"`
		KeyURL      string   `yaml:"keyURL,omitempty"`
		KeySet      string   `yaml:"keySet,omitempty"`
		TenantClaim string   `yaml:"tenantClaim,omitempty"`
		RolesClaim  string   `yaml:"rolesClaim,omitempty"`
		Roles       []string `yaml:"roles,omitempty,flow"`
	}
	tenant struct {
		Name        string `yaml:"name"`
		Weight      int    `yaml:"weight"`
		Rate        int    `yaml:"rate,omitempty"`
		Concurrency int    `yaml:"concurrency,omitempty"`
	}
	machineType struct {
		Fleet        string         `yaml:"fleet"`
		Tenure       string         `yaml:"tenure"`
		PricePerHour string         `yaml:"pricePerHour,omitempty"`
		Most         int            `yaml:"most"`
		Cores        int            `yaml:"cores"`
		Memory       string         `yaml:"memory,omitempty"`
		Accelerators map[string]int `yaml:"accelerators,omitempty"`
		Parts        []part         `yaml:"parts,omitempty"`
		Backend      string         `yaml:"backend"`
	}
	part struct {
		Name    string `yaml:"name"`
		Cores   int    `yaml:"cores"`
		Percent int    `yaml:"percent,omitempty"`
		Memory  string `yaml:"memory,omitempty"`
	}
	inferenceApp struct {
		Fleet          string    `yaml:"fleet"`
		Objective      objective `yaml:"objective"`
		AccuracyTarget string    `yaml:"accuracyTarget,omitempty"`
		AccuracyFloor  string    `yaml:"accuracyFloor,omitempty"`
		Weight         string    `yaml:"weight,omitempty"`
		Late           string    `yaml:"late,omitempty"`
		Demand         string    `yaml:"demand,omitempty"`
		MinInstances   int       `yaml:"minInstances,omitempty"`
		MaxInstances   int       `yaml:"maxInstances,omitempty"`
		Variants       []variant `yaml:"variants,omitempty"`
		Stages         []stage   `yaml:"stages,omitempty"`
		Inputs         []tensor  `yaml:"inputs,omitempty"`
		Outputs        []tensor  `yaml:"outputs,omitempty"`
	}
	objective struct {
		Latency    string `yaml:"latency"`
		Percentile string `yaml:"percentile,omitempty"`
	}
	variant struct {
		Name     string `yaml:"name"`
		Model    model  `yaml:"model"`
		Accuracy string `yaml:"accuracy,omitempty"`
		MaxBatch int    `yaml:"maxBatch,omitempty"`
		Memory   string `yaml:"memory,omitempty"`
	}
	model struct {
		URI    string `yaml:"uri"`
		SHA256 string `yaml:"sha256,omitempty"`
		Secret string `yaml:"secret,omitempty"`
	}
	stage struct {
		Name     string            `yaml:"name"`
		Variants []variant         `yaml:"variants,omitempty"`
		Function string            `yaml:"function,omitempty"`
		With     map[string]string `yaml:"with,omitempty"`
		Stateful bool              `yaml:"stateful,omitempty"`
		Inputs   map[string]string `yaml:"inputs,omitempty"`
		Outputs  map[string]string `yaml:"outputs,omitempty"`
		Next     []edge            `yaml:"next,omitempty"`
	}
	edge struct {
		To     string `yaml:"to"`
		FanOut string `yaml:"fanOut,omitempty"`
		Rows   string `yaml:"rows,omitempty"`
	}
	tensor struct {
		Name     string  `yaml:"name"`
		DataType string  `yaml:"dataType"`
		Shape    []int64 `yaml:"shape,flow"`
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
