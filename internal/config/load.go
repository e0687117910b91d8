package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds the size of a file.
const MaxBytes = 1 << 20

// Load reads and checks a sluice.yaml. The error is a Problems when the file was read but is wrong. It does not check
// names of systems and rules, see CheckNames, nor look for models, see Resolve.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration: %w: name another one, or write one with 'sluice config init'", err)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return Parse(data, path)
}

// Parse is Load for text that is already in memory. path is used in messages, and relative paths in the file start from
// its directory.
func Parse(data []byte, path string) (*File, error) {
	f := &File{name: path, dir: filepath.Dir(path), lines: map[string]int{}}
	c := &checker{f: f, bad: map[string]bool{}}
	if !c.read(data, f, "") {
		return nil, c.err()
	}
	f.defaults()
	c.file()
	if err := c.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// read decodes a whole file into a struct, whose fields stand below path. It returns false when the file is too large
// or no mapping.
func (c *checker) read(data []byte, into any, path string) bool {
	if len(data) > MaxBytes {
		c.at(1, "", "larger than the limit of %d bytes", MaxBytes)
		return false
	}
	root, ok := parseYAML(data, c)
	if ok {
		(&decoder{c: c}).fields(root, reflect.ValueOf(into).Elem(), path)
	}
	return ok
}

// parseYAML returns the one mapping that a file must be.
func parseYAML(data []byte, c *checker) (*yaml.Node, bool) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		c.at(1, "", "the file is empty: `sluice config init` writes one to start from")
		return nil, false
	}
	if err != nil {
		c.syntax(err, data)
		return nil, false
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		c.at(second.Line, "", "a second document begins here: put everything into one")
	case !errors.Is(err, io.EOF):
		c.syntax(err, data)
	}
	if len(c.found) > 0 {
		return nil, false
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		c.at(doc.Line, "", "not a mapping: begin with `version: 1`")
		return nil, false
	}
	return doc.Content[0], true
}

var (
	yamlLine    = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	yamlAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
	yamlControl = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)
)

// syntax reports an error of the YAML library with the line in its text. The library leaves it out in the first line,
// and for aliases and control characters.
func (c *checker) syntax(err error, data []byte) {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	line := 0
	if m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if line == 0 {
		line = 1
		at := 0
		if m := yamlAnchor.FindStringSubmatch(text); m != nil {
			at = bytes.Index(data, []byte("*"+m[1]))
		} else if found := yamlControl.FindIndex(data); found != nil && strings.Contains(text, "control characters") {
			at = found[0]
		}
		line += bytes.Count(data[:max(at, 0)], []byte("\n"))
	}
	c.at(line, "", "not valid YAML: %s", text)
}

// Path returns a path in the file as one that the process can open: relative ones start from the file's directory.
func (f *File) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

// Name returns the path the file was read from.
func (f *File) Name() string { return f.name }
