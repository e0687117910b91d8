package schema

import (
	"encoding/json"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// Compiled is a schema that values are checked against.
type Compiled struct{ *jsonschema.Schema }

// Compile reads the schema at a pointer, such as #/components/schemas/App, of a document; # is the document itself.
func Compile(document []byte, pointer string) (Compiled, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
	if err != nil {
		return Compiled{}, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	const where = "mem:///schema.json"
	if err := c.AddResource(where, doc); err != nil {
		return Compiled{}, err
	}
	s, err := c.Compile(where + pointer)
	return Compiled{s}, err
}

// JSON returns why a text does not fit; nil for one that does.
func (c Compiled) JSON(text []byte) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	return c.Validate(v)
}

// YAML is JSON for a text in YAML.
func (c Compiled) YAML(text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.JSON(b)
}
