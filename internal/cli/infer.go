package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

// largestAnswer bounds what is read of a server's answer, in bytes.
const largestAnswer = 1 << 30

func inferCommand() command {
	return command{
		name: "infer", summary: "call an app of a running server once",
		usage: "APP [--input NAME=VALUE ...]",
		about: `
VALUE is JSON ([[1, 2]], or one number or text), or @FILE: a picture (.png, .jpg), resized to the input's height and
width with values in [0, 1], a tensor (.npy, .json), or else the raw bytes of the tensor. Inputs that are not given
are zeros. Dimensions that may vary are 1, unless the value says otherwise. --output names an output, of several only
those that are asked for come; with =FILE it is written into a file (.npy, .png of a picture, else its bytes) and not
printed.`,
		examples: "sluice infer digits --input image=@seven.png\nsluice infer adder --input a=[[1,2,3]] --input " +
			"b=[[4,5,6]]\nsluice infer cutout --input image=@photo.jpg --output mask=mask.png",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			base := fs.String("url", "http://localhost:8000", "`address` of the server")
			version := fs.String("model-version", "", "`version` of the model; empty leaves the choice to the server")
			var given []string
			fs.Func("input", "an input, `NAME=VALUE`; may be given several times", func(s string) error {
				if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
					return fmt.Errorf("%q is not NAME=VALUE", s)
				}
				given = append(given, s)
				return nil
			})
			asked := listFlag(fs, "output", "an output to have, `NAME` or NAME=FILE; may be given several times")
			return func(e *Env, args []string) error {
				if len(args) == 0 {
					return fault.Errorf(fault.Usage, "say which app to call: infer APP")
				}
				if len(args) > 1 {
					return fault.Errorf(fault.Usage, "%q is not understood: inputs are given as --input NAME=VALUE",
						args[1])
				}
				c := inferCall{base: serverURL(*base), app: args[0], version: *version,
					token: e.Getenv("SLUICE_TOKEN")}
				return c.run(e.Context, e.Stdout, given, *asked)
			}
		},
	}
}

// listFlag declares a flag that may be given several times.
func listFlag(fs *flag.FlagSet, name, usage string) *[]string {
	var all []string
	fs.Func(name, usage, func(s string) error {
		all = append(all, s)
		return nil
	})
	return &all
}

// askedOf returns what NAME and NAME=FILE ask for of outputs, and the files by name.
func askedOf(v, outputs []string) (asked []oip.RequestedOutput, files map[string]string, err error) {
	files = make(map[string]string)
	for _, x := range v {
		name, file, _ := strings.Cut(x, "=")
		if len(outputs) > 0 && !slices.Contains(outputs, name) {
			return nil, nil, fault.Errorf(fault.Usage, "there is no output %q: there are %s", name,
				strings.Join(outputs, ", "))
		}
		asked = append(asked, oip.RequestedOutput{Name: name})
		if file != "" {
			files[name] = file
		}
	}
	return asked, files, nil
}

// inferCall is one call of an app.
type inferCall struct{ base, app, version, token string }

func (c *inferCall) path() string {
	p := c.base + "/v2/models/" + url.PathEscape(c.app)
	if c.version != "" {
		p += "/versions/" + url.PathEscape(c.version)
	}
	return p
}

// run asks for the app's inputs, sends them and prints the outputs.
func (c *inferCall) run(ctx context.Context, to io.Writer, given, names []string) error {
	text, _, err := c.send(ctx, http.MethodGet, c.path(), nil, oip.NoBinary)
	if err != nil {
		return err
	}
	var model struct {
		Inputs []struct {
			Name, Datatype string
			Shape          []int64
		}
		Outputs []struct{ Name string }
	}
	if err := json.Unmarshal(text, &model); err != nil {
		return fmt.Errorf("%s: %w", c.path(), err)
	}
	values := make(map[string]string)
	for _, x := range given {
		name, value, _ := strings.Cut(x, "=")
		values[name] = value
	}
	r := &oip.RESTRequest{BinaryOutputs: false}
	for _, in := range model.Inputs {
		spec := tensor.Spec{Name: in.Name, DType: tensor.ParseDType(in.Datatype), Shape: in.Shape}
		t, err := inputOf(&spec, values)
		if err != nil {
			return fault.Errorf(fault.Usage, "input %q (%s %v): %w", in.Name, in.Datatype, tensor.Dims(in.Shape), err)
		}
		r.Inputs = append(r.Inputs, t)
		delete(values, in.Name)
	}
	for name := range values {
		var names []string
		for _, in := range model.Inputs {
			names = append(names, in.Name)
		}
		return fault.Errorf(fault.Usage, "app %q has no input %q: it takes %s", c.app, name, strings.Join(names, ", "))
	}
	var outputs []string
	for _, x := range model.Outputs {
		outputs = append(outputs, x.Name)
	}
	asked, files, err := askedOf(names, outputs)
	if err != nil {
		return err
	}
	r.Outputs, r.BinaryOutputs = asked, len(files) > 0
	body, head, err := oip.EncodeRESTRequest(r, true)
	if err != nil {
		return err
	}
	text, head, err = c.send(ctx, http.MethodPost, c.path()+"/infer", body, head)
	refused := (*functions.Refusal)(nil)
	if errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge && len(asked) == 0 &&
		len(outputs) > 1 {
		return fmt.Errorf("%w. Name one with --output: %s", err, strings.Join(outputs, ", "))
	}
	if err != nil {
		return err
	}
	answer, err := oip.DecodeRESTResponse(text, head)
	if err != nil {
		return err
	}
	if err := written(to, answer, files); err != nil || len(answer.Outputs) == 0 && len(files) > 0 {
		return err
	}
	if text, _, err = oip.EncodeREST(answer, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", text)
	return err
}

// written writes outputs into files and takes them out of the answer.
func written(to io.Writer, answer *oip.RESTResponse, files map[string]string) error {
	var left []tensor.Tensor
	for k := range answer.Outputs {
		t := &answer.Outputs[k]
		file := files[t.Name]
		if file == "" {
			left = append(left, *t)
			continue
		}
		b, err := samples.Encode(file, t)
		if err == nil {
			err = os.WriteFile(file, b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("output %q: %w", t.Name, err)
		}
		fmt.Fprintf(to, "%s: %s %v is in %s\n", t.Name, t.DType, tensor.Dims(t.Shape), file)
	}
	answer.Outputs = left
	return nil
}

// send sends a request and returns the body of the answer, with the length of its JSON.
func (c *inferCall) send(ctx context.Context, method, where string, body []byte, head int) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, where, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fault.Wrap(fault.Usage, err)
	}
	if head != oip.NoBinary {
		r.Header.Set(oip.HeaderLength, strconv.Itoa(head))
	}
	authorize(r, c.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, 0, fault.Errorf(fault.NoServer, "%w: is the server running, and is --url its HTTP address?", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, largestAnswer))
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		var said struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(text, &said) != nil || said.Error == "" {
			said.Error = fmt.Sprintf("%.200s: is --url the HTTP address of a server of models?", bytes.TrimSpace(text))
		}
		return nil, 0, &functions.Refusal{
			Status: resp.StatusCode, Text: fmt.Sprintf("%s: %s", resp.Status, said.Error),
		}
	}
	head = oip.NoBinary
	if h := resp.Header.Get(oip.HeaderLength); h != "" {
		if head, err = strconv.Atoi(h); err != nil {
			return nil, 0, err
		}
	}
	return text, head, nil
}

// inputOf makes an input of its value; zeros without one.
func inputOf(s *tensor.Spec, values map[string]string) (tensor.Tensor, error) {
	t := tensor.Tensor{Name: s.Name, DType: s.DType, Shape: samples.OneItem(s.Shape)}
	value, ok := values[s.Name]
	if !ok {
		n, err := tensor.Elements(t.Shape, 1<<28)
		element := make([]byte, max(s.DType.Size(), 4*map[bool]int{true: 1}[s.DType == tensor.Bytes]))
		t.Data = bytes.Repeat(element, int(n))
		return t, err
	}
	if file, ok := strings.CutPrefix(value, "@"); ok {
		data, err := os.ReadFile(file)
		if err != nil {
			return t, err
		}
		return samples.Decode(filepath.ToSlash(file), data, s, len(s.Shape) > 0 && s.Shape[0] < 0)
	}
	return samples.DecodeJSON(value, s)
}
