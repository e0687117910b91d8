package resources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/host/fault"
)

// maxLeaves bounds the values of one service that are looked at, aliases expanded.
const maxLeaves = 20_000

// items returns the resources of a document: those of a list, or the one that it is.
func items(doc *yaml.Node) []*yaml.Node {
	n := doc
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if list := valueAt(n, "items"); list != nil && list.Kind == yaml.SequenceNode &&
		strings.HasSuffix(word(valueAt(n, "kind")), "List") {
		return list.Content
	}
	return []*yaml.Node{n}
}

// valueAt returns the value of a key; nil where n is no mapping or lacks it.
func valueAt(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n = followed(n); n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		at := -1
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				at = i + 1
			}
		}
		if at < 0 {
			return nil
		}
		n = n.Content[at]
	}
	return followed(n)
}

// followed returns what an alias stands for. The library refuses aliases of aliases.
func followed(n *yaml.Node) *yaml.Node {
	for hops := 0; n != nil && n.Kind == yaml.AliasNode; hops++ {
		if hops > 100 {
			return nil
		}
		n = n.Alias
	}
	return n
}

func word(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// formats are the older spellings of a model's format, as a key of the predictor.
var formats = []string{"onnx", "triton", "sklearn", "xgboost", "tensorflow", "pytorch", "pmml", "lightgbm", "paddle",
	"huggingface"}

// kept matches the fields of a service that are read, or that say nothing of what it serves.
var kept = regexp.MustCompile(`^(apiVersion|kind|status\b.*|metadata\.(name|namespace|uid|resourceVersion|generation|` +
	`creationTimestamp|managedFields\b.*|finalizers\b.*|selfLink)|` +
	`metadata\.annotations\.kubectl\.kubernetes\.io/last-applied-configuration|` +
	`spec\.predictor\.(minReplicas|maxReplicas|batcher\.maxBatchSize|` +
	`model\.(modelFormat\.(name|version)|runtime|storageUri)|` +
	`(` + strings.Join(formats, "|") + `)\.(storageUri|runtimeVersion)))$`)

// whys say what becomes of fields that are not read; the first that fits counts.
var whys = []struct{ below, why string }{
	{"spec.predictor.canaryTrafficPercent", "the revision before is not in the service: a plan chooses between " +
		"models by " +
		"load and accuracy, so add the other model as a variant"},
	{"spec.predictor.scaleTarget", "instances follow the objective and the load"},
	{"spec.predictor.scaleMetric", "instances follow the objective and the load"},
	{"spec.predictor.autoScaling", "instances follow the objective and the load"},
	{"spec.predictor.containerConcurrency", "batches and slots follow the plan"},
	{"spec.predictor.batcher", "batches form by the objective"},
	{"spec.predictor.timeout", "a query that cannot be in time is dropped: write the objective's latency"},
	{"spec.predictor.model.protocolVersion", "clients speak the Open Inference Protocol v2, over HTTP or gRPC"},
	{"spec.predictor.model.storage", "name the model by storageUri"},
	{"spec.predictor.model.resources", "a MachineType says what a machine has"},
	{"spec.predictor.nodeSelector", "a MachineType says where its pods run"},
	{"spec.predictor.tolerations", "a MachineType says where its pods run"},
	{"spec.predictor.affinity", "a MachineType says where its pods run"},
	{"spec.predictor.containers", "a server of its own is not run: give its model as ONNX"},
	{"spec.predictor", "a MachineType describes the pods that serve: see its podTemplate"},
	{"spec.transformer", "nothing is run before or after the model: make stages of it"},
	{"spec.explainer", "explanations are not served"},
	{"", "it is not read"},
}

// service reads one resource. It returns nil for one of another kind.
func (l *List) service(n *yaml.Node) (*Service, error) {
	kind, version := word(valueAt(n, "kind")), word(valueAt(n, "apiVersion"))
	switch {
	case n.Kind == yaml.ScalarNode && word(n) == "":
		return nil, nil // an empty document
	case n.Kind != yaml.MappingNode:
		return nil, fault.Errorf(fault.Config, "line %d: not a resource: a mapping with apiVersion, kind, metadata "+
			"and "+
			"spec", n.Line)
	case kind != "InferenceService":
		l.leave(fmt.Sprintf("%s %s", kind, word(valueAt(n, "metadata", "name"))), n.Line,
			"only InferenceServices are read")
		return nil, nil
	case version != "serving.kserve.io/v1beta1":
		return nil, fault.Errorf(fault.Config, "line %d: an InferenceService of %q: serving.kserve.io/v1beta1 is read",
			n.Line, version)
	}
	p := predictor{at: valueAt(n, "spec", "predictor")}
	s := &Service{Name: word(valueAt(n, "metadata", "name")), Namespace: word(valueAt(n, "metadata", "namespace")),
		Line: n.Line}
	if !label(s.Name) {
		return nil, fault.Errorf(fault.Config, "line %d: metadata.name is %q: lower-case letters, digits and "+
			"dashes, at "+
			"most %d of them", n.Line, s.Name, maxName)
	}
	if p.at == nil {
		return nil, fault.Errorf(fault.Config, "line %d: InferenceService %q has no spec.predictor", n.Line, s.Name)
	}
	if err := p.read(s); err != nil {
		return nil, fault.Errorf(fault.Config, "InferenceService %s: %w", s.Name, err)
	}
	return s, l.lost(n, s)
}

// lost lists the fields that are not read.
func (l *List) lost(n *yaml.Node, s *Service) error {
	all, ok := leaves(n, "", nil, new(int))
	if !ok {
		return fault.Errorf(fault.Config, "InferenceService %s: more than %d values, aliases "+
			"expanded", s.Name, maxLeaves)
	}
	told := map[string]bool{}
	for _, f := range all {
		path := inList.ReplaceAllString(f.Path, "[]")
		if kept.MatchString(path) || s.Demand > 0 && slices.Contains([]string{"spec.predictor.scaleTarget",
			"spec.predictor.scaleMetric"}, path) || path == "spec.predictor.model.protocolVersion" &&
			strings.HasSuffix(f.Why, "v2") {
			continue
		}
		for _, w := range whys {
			if !below(path, w.below) {
				continue
			}
			at := f.Path
			if w.below != "" && w.below != "spec.predictor" {
				at = w.below // one line for all that is in it
			}
			if !told[at] {
				told[at] = true
				l.leave(s.Name+": "+at, f.Line, "%s", w.why)
			}
			break
		}
	}
	return nil
}

// leaves lists the single values of a tree, each with its value as Why. ok is false for more than maxLeaves.
func leaves(n *yaml.Node, path string, out []Left, count *int) ([]Left, bool) {
	if n = followed(n); n == nil {
		return out, true
	}
	if *count++; *count > maxLeaves {
		return out, false
	}
	ok := true
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content) && ok; i += 2 {
			key := n.Content[i].Value
			if path != "" {
				key = path + "." + key
			}
			out, ok = leaves(n.Content[i+1], key, out, count)
		}
	case yaml.SequenceNode:
		for i := 0; i < len(n.Content) && ok; i++ {
			out, ok = leaves(n.Content[i], at(path, i), out, count)
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			out = append(out, Left{path, n.Line, n.Value})
		}
	}
	return out, ok
}
