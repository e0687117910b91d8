package python

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
)

// inherited are the variables of this process's environment that processes have, and the beginnings of such. Others
// can hold secrets of the server.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH",
	"PYTHONHOME", "SSL_CERT_FILE", "LC_", "XDG_", "CONDA_", "PYENV_", "CUDA", "NVIDIA_", "NCCL_", "ROCM_", "HIP_",
	"OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "TORCH_", "PYTORCH_", "HF_", "TRANSFORMERS_", "TOKENIZERS_",
}

// secrets are endings of names whose values are not for models, though they begin as those of packages do: HF_TOKEN,
// NVIDIA_API_KEY.
var secrets = []string{"TOKEN", "KEY", "SECRET", "PASSWORD"}

// passedOn reports whether processes have a variable of this process's environment.
func passedOn(name string) bool {
	if slices.ContainsFunc(secrets, func(end string) bool { return strings.HasSuffix(name, end) }) {
		return false
	}
	return slices.ContainsFunc(inherited, func(x string) bool {
		return name == x || strings.HasPrefix(name, x) && (strings.HasSuffix(x, "_") || x == "CUDA")
	})
}

// threadVariables tell numerical libraries how many threads they may use.
var threadVariables = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"}

// environment is the one place that says what the processes of an instance have in their environment. Later entries
// win: this process's, then the defaults, then the configuration's, then those of the instance.
func (c *Config) environment(spec dataplane.InstanceSpec) []string {
	set := map[string]string{
		"PYTHONUNBUFFERED": "1",
		// A model never downloads anything by accident.
		"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
	}
	if spec.Cores > 0 {
		for _, name := range threadVariables {
			if os.Getenv(name) == "" {
				set[name] = strconv.Itoa(spec.Cores)
			}
		}
	}
	maps.Copy(set, c.Environment)
	if c.ForInstance != nil {
		maps.Copy(set, c.ForInstance(spec))
	}
	if c.Memory > 0 {
		set["SLUICE_WORKER_DATA"] = strconv.FormatInt(c.Memory+c.Memory/2+dataReserve, 10)
	}
	return environ(set)
}

// environ returns the inherited environment with variables set.
func environ(set map[string]string) []string {
	var out []string
	for _, x := range os.Environ() {
		name, _, _ := strings.Cut(x, "=")
		if _, own := set[name]; own {
			continue
		}
		if passedOn(name) {
			out = append(out, x)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+"="+set[name])
	}
	return out
}
