package resources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
)

// Bounds of what is read.
const (
	maxServices = 1000    // InferenceServices in one file
	maxImport   = 4 << 20 // bytes of it
)

// Importing says how InferenceServices become apps.
type Importing struct {
	Fleet     string        // of the apps; empty for `default`
	Objective time.Duration // latency of every app, since KServe has none; 0 for 100ms
}

// Service is a KServe InferenceService as far as it is read.
type Service struct {
	Name      string
	Namespace string
	Format    string // of the model, such as onnx
	Runtime   string // empty where KServe chooses one
	URI       string
	Least     int     // replicas
	Most      int     // replicas; 0 for no bound
	Demand    float64 // queries/s that its replicas at the start are meant for; 0 when not known
	MaxBatch  int     // 0 when not said
	Line      int
}

// ImportKServe makes InferenceApps of the InferenceServices (serving.kserve.io/v1beta1) in a YAML or JSON text:
// documents one after another, or a list as `kubectl get -o yaml` prints it. The error is of kind fault.Config.
func ImportKServe(text []byte, how Importing) (*List, error) {
	services, list, err := readKServe(text)
	if err != nil {
		return nil, err
	}
	how = how.withDefaults()
	for _, s := range services {
		path := "InferenceService " + s.Name
		if why := s.unserved(); why != "" {
			list.leave(path, s.Line, "%s: the service is left out", why)
			continue
		}
		list.note("KServe has no latency objective: every app gets %v, write yours", how.Objective)
		if !strings.HasSuffix(s.URI, ".onnx") {
			list.note("%s: %s must be a folder laid out as VERSION/model.onnx, or name the file itself", s.Name, s.URI)
		}
		if s.onTriton() {
			list.note("%s: runs on a MachineType with backend triton", s.Name)
		}
		a := config.App{SLO: config.SLO{Latency: config.Duration(how.Objective)}, Demand: s.Demand,
			MinInstances: s.Least, MaxInstances: s.Most}
		v := config.Variant{Name: s.Name, MaxBatch: s.MaxBatch}
		list.addApp(Meta{Name: s.Name, Namespace: s.Namespace}, how.Fleet, &a, &v, model{URI: s.URI})
	}
	return list.sorted(), nil
}

func (how Importing) withDefaults() Importing {
	if how.Fleet == "" {
		how.Fleet = "default"
	}
	if how.Objective <= 0 {
		how.Objective = 100 * time.Millisecond
	}
	return how
}

// onTriton tells whether the service's model runs on Triton rather than on ONNX Runtime.
func (s *Service) onTriton() bool {
	return s.Format != "onnx" && (s.Format == "triton" || strings.Contains(s.Runtime, "triton"))
}

// unserved returns why no InferenceApp can serve the service; the empty text where one can.
func (s *Service) unserved() string {
	scheme, _, _ := strings.Cut(s.URI, "://")
	switch {
	case s.URI == "":
		return "it names no storageUri"
	case s.Format != "onnx" && !s.onTriton():
		return fmt.Sprintf("a model of format %q needs a server of its own: convert it to ONNX, or run it on Triton",
			s.Format)
	case scheme == "https":
		return "a model from https needs its digest, which KServe does not ask for: write the InferenceApp with sha256"
	case scheme == "oci" && !strings.Contains(s.URI, "@sha256:"):
		return "an image is named by its digest, IMAGE@sha256:..., so that what is served is what was meant"
	case scheme != "pvc" && scheme != "s3" && scheme != "oci":
		return fmt.Sprintf("models come from pvc://, s3://, oci:// or https://, not from %s", s.URI)
	}
	return ""
}

// readKServe reads the services and lists what is lost of each.
func readKServe(text []byte) ([]Service, *List, error) {
	if len(text) > maxImport {
		return nil, nil, fault.Errorf(fault.Config, "larger than the limit of %d bytes", maxImport)
	}
	list, seen := &List{}, map[string]bool{}
	var out []Service
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fault.Errorf(fault.Config, "not valid YAML: %w", err)
		}
		for _, n := range items(&doc) {
			s, err := list.service(n)
			if err != nil {
				return nil, nil, err
			}
			if s == nil {
				continue
			}
			if key := s.Namespace + "/" + s.Name; seen[key] {
				return nil, nil, fault.Errorf(fault.Config, "line %d: InferenceService %q is there "+
					"twice", s.Line, s.Name)
			} else if seen[key] = true; len(seen) > maxServices {
				return nil, nil, fault.Errorf(fault.Config, "more than %d InferenceServices", maxServices)
			}
			out = append(out, *s)
		}
	}
	if len(out) == 0 && len(list.Left) == 0 {
		return nil, nil, fault.Errorf(fault.Config, "there is no InferenceService in it: save one with "+
			"`kubectl get inferenceservice -o yaml`")
	}
	return out, list, nil
}
