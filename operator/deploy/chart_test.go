// Package deploy_test installs the chart on a real API server.
package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// all turns every part on.
const all = `
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullSecrets: [pull]}
networkPolicies: {modelPorts: [9000], issuerPorts: [8443]}
monitoring: {serviceMonitor: true, rules: true, dashboard: true, labels: {release: prometheus}}
picker: {fleets: [{namespace: models, fleet: default}]}
kserve: {servingRuntime: true}
operator: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {nodeAffinity: {}}, args: ["--v=1"]}
`

func TestLint(t *testing.T) {
	for _, text := range []string{"", all, "namespaces: [a, b]"} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion("chart", values, "sluice", &chartutil.KubeVersion{Version: "v1.36.3",
			Major: "1", Minor: "36"}).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("with %q: %v", text, m)
			}
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"operator: {replica: 3}", "replica"},
		{"operator: {replicas: 0}", "replicas"},
		{"image: {digest: latest}", "digest"},
		{"image: {pullPolicy: Sometimes}", "pullPolicy"},
		{"namespaces: [Not_A_Name]", "namespaces"},
		{"picker: {fleets: [{fleet: a}]}", "namespace"},
		{"monitoring: {interval: often}", "interval"},
		{"replicas: 2", "replicas"},
	} {
		if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one of %q", c.values, err, c.want)
		}
	}
}

// Every value has a comment in values.yaml and a place in the schema, which allows no other.
func TestValuesAreExplained(t *testing.T) {
	text, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for n, line := range strings.Split(string(text), "\n") {
		top := line != "" && line[0] != ' ' && line[0] != '#'
		if top && !strings.HasPrefix(before, "#") && !strings.HasSuffix(line, "{}") && line != "image:" &&
			line != "operator:" {
			t.Errorf("values.yaml:%d: %s has no comment", n+1, line)
		}
		before = strings.TrimSpace(line)
	}
}

// render is `helm template` with values as YAML, split into objects in the order in which Helm installs them.
func render(values string) ([]map[string]any, error) {
	c, err := loader.Load("chart")
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
	whole, err := chartutil.ToRenderValues(c, given,
		chartutil.ReleaseOptions{Name: "sluice", Namespace: "sluice-system",
			IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, whole)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, m := range manifests {
		objects, err := documents(m.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

func documents(text string) (out []map[string]any, err error) {
	for r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var o map[string]any
		if err := yaml.UnmarshalStrict(doc, &o); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, doc)
		}
		if len(o) > 0 {
			out = append(out, o)
		}
	}
}

// The packed chart holds the definitions, as `make crds` has made them.
func TestThePackedChartIsWhole(t *testing.T) {
	p := action.NewPackage()
	p.Destination = t.TempDir()
	path, err := p.Run("chart", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := definitions(c); got != 4 {
		t.Errorf("%s holds %d definitions, want 4", filepath.Base(path), got)
	}
	for _, f := range c.Raw {
		if strings.HasSuffix(f.Name, ".go") {
			t.Errorf("%s is in the chart", f.Name)
		}
	}
	for _, d := range c.CRDObjects() {
		made, err := os.ReadFile(filepath.Join("../config/crd", filepath.Base(d.Filename)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(made, d.File.Data) {
			t.Errorf("%s is not as in config/crd: run `make crds`", d.Filename)
		}
	}
}

func definitions(c *chart.Chart) (n int) {
	for _, d := range c.CRDObjects() {
		if bytes.Contains(d.File.Data, []byte("kind: CustomResourceDefinition")) {
			n++
		}
	}
	return n
}
