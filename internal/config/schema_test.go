package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/schema"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving/workload"
)

// enums are the values of settings that have few.
var enums = map[string][]string{
	"Items.Distribution":     {"constant", "uniform", "lognormal", "gaussian", "histogram", "mixture"},
	"Stage.Function":         ops.Names(),
	"AppSpec.Process":        {"poisson", "poisson-ms", "uniform", "gamma", "trace", "sessions"},
	"AppSpec.Interpolate":    {"step", "linear"},
	"ItemsSpec.Distribution": {"constant", "uniform", "lognormal", "gaussian", "histogram", "mixture"},
}

// schemaOf makes the schema of a file that this package reads.
func schemaOf(t *testing.T, of reflect.Type, title string, comments map[string]schema.Comment) string {
	t.Helper()
	m := schema.Maker{
		Tag: "yaml", Refs: "#/definitions/", Comments: comments, Enums: enums, Lenient: true,
		Special: map[reflect.Type]schema.Schema{
			reflect.TypeFor[Duration](): {
				"type":    []any{"string", "integer"},
				"pattern": `^\+?(0|([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`, "minimum": 0, "maximum": 0,
				"patternErrorMessage": "write a number and its unit, such as 50ms, 1.5s or 2m", // for editors
			},
			reflect.TypeFor[Size](): {
				"type": []any{"string", "number"}, "pattern": `^ *\+?([0-9]|\.[0-9]).*$`, "minimum": 0,
				"patternErrorMessage": "write a number and its unit, such as 512MiB or 2GB",
			},
		},
		Short: map[reflect.Type]schema.Schema{systemType: {"type": []any{"string", "number", "boolean"}}},
	}
	root := m.Of(of)
	root["$schema"], root["title"] = "http://json-schema.org/draft-07/schema#", title
	top := m.Defs[of.Name()]
	delete(m.Defs, of.Name())
	delete(root, "$ref")
	for k, v := range top {
		root[k] = v
	}
	root["definitions"] = m.Defs
	text, err := schema.Text(root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const (
	fileSchema     = "../../docs/schema/sluice.json"
	functionSchema = "../../docs/schema/function.json"
	workloadSchema = "../../docs/schema/workload.json"
)

func TestTheSchemasAreUpToDate(t *testing.T) {
	golden(t, fileSchema, schemaOf(t, reflect.TypeFor[File](), "sluice.yaml", comments(t)))
	golden(t, functionSchema, schemaOf(t, reflect.TypeFor[Function](), "fn.yaml", comments(t)))
	golden(t, workloadSchema, schemaOf(t, reflect.TypeFor[workload.Spec](), "workload.yaml",
		schema.Comments(t, "../../serving/workload/spec.go", "../../serving/workload/sessions.go")))
}

// compiled reads a schema. loose is the same for the form of files alone, whatever is missing or makes no sense.
func compiled(t *testing.T, path string) (whole, loose schema.Compiled) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err = schema.Compile(text, "#"); err != nil {
		t.Fatal(err)
	}
	var parts any
	if err := json.Unmarshal(text, &parts); err != nil {
		t.Fatal(err)
	}
	loosen(parts)
	if text, err = json.Marshal(parts); err != nil {
		t.Fatal(err)
	}
	if loose, err = schema.Compile(text, "#"); err != nil {
		t.Fatal(err)
	}
	return whole, loose
}

// loosen removes from a schema what says which settings and values there must be, and keeps what says their form.
func loosen(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			loosen(x)
		}
	case map[string]any:
		for k, x := range v {
			_, list := x.([]any)
			_, number := x.(float64)
			switch {
			case list && k == "required":
				delete(v, k)
			case number && v["pattern"] == nil && strings.HasSuffix(strings.ToLower(k), "imum"):
				delete(v, k)
			default:
				loosen(x)
			}
		}
	}
}

// decodes reports whether a text has the form of a file, whatever is missing or makes no sense.
func decodes(text []byte, into any) bool {
	c := &checker{f: &File{lines: map[string]int{}}, bad: map[string]bool{}}
	return c.read(text, into, "") && len(c.found) == 0
}

// Every configuration in the repository, in files and in the documents, fits the schema where this package reads it.
func TestTheSchemasTakeWhatIsRead(t *testing.T) {
	files := map[bool]int{} // of functions, and others
	wholeFile, looseFile := compiled(t, fileSchema)
	wholeFunction, looseFunction := compiled(t, functionSchema)
	fits := func(where string, text []byte, whole, loose schema.Compiled, wrong error) {
		files[whole == wholeFunction]++
		if err := loose.YAML(text); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if err := whole.YAML(text); wrong == nil && err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	check := func(where string, text []byte) {
		if decodes(text, new(File)) {
			_, wrong := Parse(text, where)
			fits(where, text, wholeFile, looseFile, wrong)
		}
		if decodes(text, new(Function)) {
			_, wrong := ParseFunction(text, where)
			fits(where, text, wholeFunction, looseFunction, wrong)
		}
	}
	for _, pattern := range []string{
		"*.yaml", "testdata/*.yaml", "../../examples/*.yaml", "../../examples/*/*.yaml",
		"../host/questions/testdata/*.yaml", "../host/resources/testdata/*.yaml", "../../scripts/guard/*.yaml",
		"../../docs/*.md", "../../docs/*/*.md",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(path) == ".yaml" {
				check(path, text)
			}
			for k, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
				check(fmt.Sprintf("%s, block %d", path, k+1), block[1])
			}
		}
	}
	check("small", []byte(small))
	if files[false] < 25 || files[true] < 2 {
		t.Errorf("only %v were checked", files)
	}
	for _, line := range regexp.MustCompile(`(?m)^( *)#: .*$`).FindAllString(string(Template()), -1) {
		one := strings.Replace(string(Template()), line, strings.Replace(line, "#: ", "", 1), 1)
		check("the template with "+line, []byte(strings.Replace(one, "tls: {} ", "tls: ", 1)))
	}
}

// What the decoder refuses by its form, an unknown key or a value of a wrong type at any place, the schema refuses.
func TestTheSchemasRefuseWhatIsRefused(t *testing.T) {
	file, loose := compiled(t, fileSchema)
	function, _ := compiled(t, functionSchema)
	_, paths := manual(t)
	for _, p := range paths {
		for _, value := range []string{"[[[]]]", "{no_such_key: {a: []}}", "[{}]", "yes and no", "1.5"} {
			text := nestedAt(p, value)
			read, err := decodes([]byte(text), new(File)), loose.YAML([]byte(text))
			if !read && err == nil {
				t.Errorf("%s fits", text)
			}
			if read && err != nil && !strings.Contains(err.Error(), "must be one of") {
				t.Errorf("%s does not fit: %v", text, err)
			}
		}
	}
	for _, name := range []string{"keys", "empty", "bare", "values"} {
		text, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if file.YAML(text) == nil {
			t.Errorf("%s.yaml fits", name)
		}
	}
	for _, text := range []string{
		"name: a\nmodel: m\nslo: {latency: 1s}\nmax_bach: 1\n", "name: a\nmodel: m\nslo: 1s\n", "name: a\nmodel: m\n",
		"name: a\nmodel: m\nslo: {latency: fast}\n",
	} {
		if _, err := ParseFunction([]byte(text), "fn.yaml"); err == nil || function.YAML([]byte(text)) == nil {
			t.Errorf("%s fits: %v", text, err)
		}
	}
}

// Workload files: those of the documents and of other tests fit, and what a strict reader refuses does not.
func TestTheSchemaOfWorkloads(t *testing.T) {
	whole, _ := compiled(t, workloadSchema)
	page, err := os.ReadFile("../../docs/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	for _, block := range blocks {
		text := block[1]
		if bytes.HasPrefix(text, []byte("items:")) { // of an entry
			text = append([]byte("apps:\n- app: a\n  "), bytes.ReplaceAll(text, []byte("\n"), []byte("\n  "))...)
		}
		if err := whole.YAML(text); err != nil {
			t.Errorf("the page's workload: %v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"seed: 1", "apps: {}", "apps: [{rate: 1}]", "apps: [{app: a, rats: 1}]", "apps: [{app: a, rate: fast}]",
		"apps: [{app: a, process: often}]", "apps: [{app: a, sessions: {clients: 1.5}}]", "{apps: [], sed: 1}",
	} {
		if whole.YAML([]byte(text)) == nil {
			t.Errorf("%s fits", text)
		}
	}
}

// Every value that a setting may have is in the schema of its setting.
func TestTheSchemasListValues(t *testing.T) {
	all := ""
	for _, path := range []string{fileSchema, functionSchema, workloadSchema} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all += strings.Join(strings.Fields(string(text)), "")
	}
	for field, values := range enums {
		if !strings.Contains(all, `"enum":["`+strings.Join(values, `","`)+`"`) {
			t.Errorf("no schema has the values of %s", field)
		}
	}
}
