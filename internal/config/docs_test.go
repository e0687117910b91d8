package config

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluice-serving/sluice/internal/schema"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
)

const manualPath = "../../docs/configuration.md"

const manualHead = `# sluice.yaml

One file says which machines there are, which models lie where, which apps clients may call and how fast each has to
be. ` + "`sluice config init REPOSITORY`" + ` writes one to start from. ` + "`sluice config check`" + ` reports
everything that is wrong with one, each problem with its line and path. [examples/](../examples) holds complete files.

The smallest useful file:

` + "```yaml\n%s```" + `

Durations are written as ` + "`50ms`, `1.5s` or `2m`" + `, sizes as ` + "`512MiB`, `8GiB` or `2GB`" + ` or as a number
of bytes. Relative paths start from the directory of the file. Unknown keys are errors, and so is a key given twice.
YAML aliases may stand for whole values; merge keys (` + "`<<`" + `) are not read. A file may hold at most 1 MiB.

Editors with a YAML language server complete the file and check it as it is written, without a network:
` + "`sluice config schema > sluice.schema.json`" + ` writes its JSON Schema beside it, and its first line names that:

` + "```yaml\n# yaml-language-server: $schema=sluice.schema.json\n```" + `

` + "`sluice config init`" + ` writes the line where there is such a file. ` + "`sluice config schema workload`" + ` and
` + "`function`" + ` are for [workload](workload.md) and [function](functions.md) files.

[options.md](options.md) lists the options of systems.

This page is made from the comments of ` + "`internal/config/file.go`" + ` by
` + "`go test ./internal/config -update`" + `.
`

// comments reads the doc comments of the structs of files.
func comments(t *testing.T) map[string]schema.Comment {
	t.Helper()
	return schema.Comments(t, "file.go", "function.go")
}

// manual renders docs/configuration.md and returns every key path it describes.
func manual(t *testing.T) (text string, paths []string) {
	t.Helper()
	docs := comments(t)
	example, err := os.ReadFile("../../examples/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, manualHead, example)
	queue := []struct {
		typ  reflect.Type
		path string
	}{{reflect.TypeFor[File](), ""}}
	where := map[reflect.Type][]string{} // every place a type stands at
	var order []reflect.Type
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if where[at.typ] == nil {
			order = append(order, at.typ)
		}
		where[at.typ] = append(where[at.typ], at.path)
		for i := range at.typ.NumField() {
			f := at.typ.Field(i)
			key := f.Tag.Get("yaml")
			if key == "" {
				if f.IsExported() {
					t.Errorf("%s.%s has no yaml key", at.typ.Name(), f.Name)
				}
				continue
			}
			path := join(at.path, key)
			paths = append(paths, path)
			typ := f.Type
			if typ.Kind() == reflect.Slice {
				typ, path = typ.Elem(), path+"[]"
			}
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			// parts of the same kind are described once
			if typ.Kind() == reflect.Struct && typ != at.typ {
				queue = append(queue, struct {
					typ  reflect.Type
					path string
				}{typ, path})
			}
		}
	}
	for _, typ := range order {
		doc := docs[typ.Name()]
		if doc.Text == "" {
			t.Errorf("type %s has no comment", typ.Name())
		}
		if typ == order[0] {
			b.WriteString("\n## The file\n\n")
		} else {
			fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", strings.Join(where[typ], "`, `"), wrap(paragraph(doc.Text), ""))
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			key := f.Tag.Get("yaml")
			if key == "" {
				continue
			}
			text := doc.Fields[f.Name]
			if text == "" {
				t.Errorf("%s.%s has no comment", typ.Name(), f.Name)
			}
			if !strings.HasPrefix(text, f.Name+" ") {
				t.Errorf("the comment of %s.%s does not begin with its name: %q", typ.Name(), f.Name, text)
			}
			b.WriteString(wrap(fmt.Sprintf("- **`%s`** (%s) %s", key, kind(f.Type),
				paragraph(strings.TrimPrefix(text, f.Name+" "))), "  "))
		}
	}
	return b.String(), paths
}

// kind names the type of a field in words.
func kind(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[Size]():
		return "size"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice:
		return "list of " + kind(t.Elem()) + "s"
	case reflect.Struct:
		return "mapping"
	case reflect.Map:
		return "names to texts"
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	}
	return t.String()
}

// paragraph joins the lines of a comment.
func paragraph(s string) string { return strings.Join(strings.Fields(s), " ") }

// wrap breaks a paragraph into lines of at most 118 characters, not inside of backquotes; all but the first are
// indented.
func wrap(s, indent string) string {
	var b strings.Builder
	column, quoted := 0, false
	for k, word := range strings.Split(s, " ") {
		switch n := utf8.RuneCountInString(word); {
		case k == 0:
			column = n
		case quoted || column+1+n <= 118:
			b.WriteByte(' ')
			column += 1 + n
		default:
			b.WriteString("\n" + indent)
			column = len(indent) + n
		}
		b.WriteString(word)
		quoted = quoted != (strings.Count(word, "`")%2 == 1)
	}
	return b.String() + "\n"
}

func TestTheManualIsUpToDate(t *testing.T) {
	text, _ := manual(t)
	golden(t, manualPath, text)
}

// TestEveryKeyIsUsable fails for a key that the decoder does not read or the manual does not name.
func TestEveryKeyIsUsable(t *testing.T) {
	text, paths := manual(t)
	if len(paths) < 60 {
		t.Fatalf("only %d keys found", len(paths))
	}
	for _, p := range paths {
		key := p[strings.LastIndex(p, ".")+1:]
		if !strings.Contains(text, "- **`"+key+"`** (") {
			t.Errorf("%s is not in the manual", p)
		}
		// A value of a type that fits nowhere is reported at exactly this path when the key is read.
		yaml := nestedAt(p, "[[[]]]")
		_, err := Parse([]byte(yaml), "x.yaml")
		at := strings.ReplaceAll(p, "[]", "[0]")
		if err == nil || !strings.Contains(err.Error(), "x.yaml:1: "+at) ||
			strings.Contains(err.Error(), "x.yaml:1: "+at+": unknown key") {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// nestedAt is a file with a value at a path and nothing else.
func nestedAt(path, value string) string {
	yaml, closing := "", ""
	for _, part := range strings.Split(path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		yaml += "{" + name + ": "
		closing = "}" + closing
		if list {
			yaml += "["
			closing = "]" + closing
		}
	}
	return yaml + value + closing
}

const builtinHead = `# Functions of stages

Stages can do these without a model, by ` + "`function`" + ` and ` + "`with`" + ` of [sluice.yaml](configuration.md).
[pipelines.md](pipelines.md) shows them at work.

Boxes are rows of four FP32 numbers: x1, y1, x2, y2, with x to the right and y down. Pictures are UINT8 or FP32, with
the picture's number first. Functions run in this process on one core, take the queries of a batch one after the other,
and give the same answer for the same input. An output holds at most 67,108,864 elements.

This page is made from package ` + "`internal/tensor/ops`" + ` by ` + "`go test ./internal/config -update`" + `.
`

// TestTheFunctionsAreDocumented renders docs/builtin.md from the documentation of the functions.
func TestTheFunctionsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(builtinHead)
	given := map[string]map[string]string{ // what must be given
		"crop": {"height": "1", "width": "1"}, "resize": {"height": "1", "width": "1"}, "threshold": {"least": "0"},
		"topk": {"k": "1"}, "constant": {"values": "1"}, "ctc": {"alphabet": "a"}, "window": {"length": "1"},
	}
	for _, name := range ops.Names() {
		f, err := ops.New(name, given[name])
		if err != nil {
			t.Fatal(err)
		}
		doc := fmt.Sprintf("`%s` %s", name, f.Doc())
		if f.Stateful() {
			doc += " It keeps something of every stream."
		}
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n| | | |\n| --- | --- | --- |\n", name, wrap(doc, ""))
		row := func(what, name, doc string) {
			if doc == "" {
				t.Errorf("%s %s has no text", what, name)
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", what, name, strings.ReplaceAll(doc, "|", "\\|"))
		}
		for _, p := range f.Inputs() {
			doc := p.Doc
			if len(p.DTypes) > 0 {
				var types []string
				for _, d := range p.DTypes {
					types = append(types, d.String())
				}
				doc = strings.Join(types, " or ") + " " + doc
			}
			if p.Optional {
				doc += ". May be left out"
			}
			row("input", p.Name, doc)
		}
		for _, p := range f.Outputs() {
			row("output", p.Name, p.Doc)
		}
		for _, o := range ops.Options(name) {
			switch {
			case o.Required:
				row("option", o.Name, o.Doc+". Required")
			case o.Default != "":
				row("option", o.Name, o.Doc+". Default: `"+o.Default+"`")
			default:
				row("option", o.Name, o.Doc)
			}
		}
		if doc := comments(t)["Stage"].Fields["Function"]; !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("the comment of Stage.Function does not name %s", name)
		}
	}
	golden(t, "../../docs/builtin.md", b.String())
}
