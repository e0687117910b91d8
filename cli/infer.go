package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	_ "image/jpeg" // pictures that people have
	_ "image/png"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/host/fault"
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
width with values in [0, 1], or else the raw bytes of the tensor. Inputs that are not given are zeros. Dimensions that
may vary are 1, unless the value says otherwise.`,
		examples: "sluice infer digits --input image=@seven.png\nsluice infer adder --input a=[[1,2,3]] --input " +
			"b=[[4,5,6]]",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			base := fs.String("url", "http://localhost:8000", "`address` of the server")
			version := fs.String("model-version", "", "`version` of the model; empty leaves the choice to the server")
			var given inputValues
			fs.Var(&given, "input", "an input, `NAME=VALUE`; may be given several times")
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "say which app to call: infer APP")
				}
				c := inferCall{base: strings.TrimSuffix(*base, "/"), app: args[0], version: *version,
					token: e.Getenv("SLUICE_TOKEN")}
				return c.run(e.Context, e.Stdout, given)
			}
		},
	}
}

// inputValues are NAME=VALUE flags.
type inputValues []string

// String implements flag.Value.
func (v *inputValues) String() string { return strings.Join(*v, " ") }

// Set implements flag.Value.
func (v *inputValues) Set(s string) error {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	*v = append(*v, s)
	return nil
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
func (c *inferCall) run(ctx context.Context, to io.Writer, given inputValues) error {
	text, _, err := c.send(ctx, http.MethodGet, c.path(), nil, oip.NoBinary)
	if err != nil {
		return err
	}
	var model struct {
		Inputs []struct {
			Name, Datatype string
			Shape          []int64
		}
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
		return fault.Errorf(fault.Usage, "app %q has no input %q", c.app, name)
	}
	body, head, err := oip.EncodeRESTRequest(r, true)
	if err != nil {
		return err
	}
	if text, head, err = c.send(ctx, http.MethodPost, c.path()+"/infer", body, head); err != nil {
		return err
	}
	answer, err := oip.DecodeRESTResponse(text, head)
	if err != nil {
		return err
	}
	if text, _, err = oip.EncodeREST(answer, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", text)
	return err
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
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, 0, fault.Wrap(fault.NoServer, err)
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
			said.Error = string(text[:min(len(text), 200)])
		}
		return nil, 0, fmt.Errorf("%s: %s", resp.Status, said.Error)
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
	t := tensor.Tensor{Name: s.Name, DType: s.DType, Shape: oneItem(s.Shape)}
	value, ok := values[s.Name]
	if !ok {
		n, err := tensor.Elements(t.Shape, 1<<28)
		element := make([]byte, max(s.DType.Size(), 4*map[bool]int{true: 1}[s.DType == tensor.Bytes]))
		t.Data = bytes.Repeat(element, int(n))
		return t, err
	}
	if file, ok := strings.CutPrefix(value, "@"); ok {
		return fromFile(t, s, file)
	}
	shape := shapeOfJSON(value)
	if len(shape) == 0 {
		value = "[" + value + "]"
	} else {
		t.Shape = shape
	}
	if s.DType == tensor.Bytes && len(shape) == 0 && !strings.HasPrefix(value, `["`) {
		quoted, _ := json.Marshal(value[1 : len(value)-1])
		value = "[" + string(quoted) + "]"
	}
	dims, err := json.Marshal(t.Shape)
	if err != nil {
		return t, err
	}
	r, err := oip.DecodeREST([]byte(fmt.Sprintf(`{"inputs":[{"name":%q,"datatype":%q,"shape":%s,"data":%s}]}`, s.Name,
		s.DType.String(), dims, value)), oip.NoBinary, oip.Bounds{}, nil, nil)
	if err != nil {
		return t, err
	}
	return r.Inputs[0], nil
}

// shapeOfJSON is the shape of nested arrays, by their first elements; empty for a value that is no array.
func shapeOfJSON(text string) []int64 {
	var shape []int64
	for {
		var list []json.RawMessage
		if json.Unmarshal([]byte(text), &list) != nil {
			return shape
		}
		shape = append(shape, int64(len(list)))
		if len(list) == 0 {
			return shape
		}
		text = string(list[0])
	}
}

// fromFile fills an input from a file: one BYTES element, a picture, or raw bytes.
func fromFile(t tensor.Tensor, s *tensor.Spec, file string) (tensor.Tensor, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return t, err
	}
	if s.DType == tensor.Bytes {
		t.Data = tensor.AppendBytes(nil, data)
		return t, t.Validate()
	}
	if picture, _, err := image.Decode(bytes.NewReader(data)); err == nil {
		return fromPicture(t, s, picture)
	}
	t.Data = data
	if open := openDimension(s.Shape); open >= 0 {
		t.Shape[open] = 1
		if n, err := tensor.Elements(t.Shape, math.MaxInt32); err == nil && n > 0 {
			t.Shape[open] = int64(len(data)) / (n * int64(s.DType.Size()))
		}
	}
	return t, t.Validate()
}

// openDimension is the last variable dimension; -1 for none.
func openDimension(shape []int64) int {
	for k := len(shape) - 1; k >= 0; k-- {
		if shape[k] < 0 {
			return k
		}
	}
	return -1
}

// fromPicture fills an input of the form [..., channels, height, width] or [..., height, width, channels]. Pictures are
// resized by the nearest point. Bytes keep their values, floats are in [0, 1].
func fromPicture(t tensor.Tensor, s *tensor.Spec, p image.Image) (tensor.Tensor, error) {
	n := len(t.Shape)
	if n < 3 {
		return t, fmt.Errorf("a picture needs an input of at least three dimensions")
	}
	box := p.Bounds()
	first := t.Shape[n-3] == 1 || t.Shape[n-3] == 3
	c, h, w := &t.Shape[n-3], &t.Shape[n-2], &t.Shape[n-1]
	if !first {
		h, w, c = c, h, w
	}
	if *h == 1 { // variable
		*h = int64(box.Dy())
	}
	if *w == 1 {
		*w = int64(box.Dx())
	}
	if *c != 1 && *c != 3 {
		return t, fmt.Errorf("a picture has 1 or 3 channels, the input %d", *c)
	}
	height, width, channels := int(*h), int(*w), int(*c)
	if height*width*channels > 1<<28 {
		return t, fmt.Errorf("the picture is too large")
	}
	at := func(ch, y, x int) float64 {
		r, g, b, _ := p.At(box.Min.X+x*box.Dx()/width, box.Min.Y+y*box.Dy()/height).RGBA()
		if channels == 1 {
			return (0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 65535
		}
		return float64([3]uint32{r, g, b}[ch]) / 65535
	}
	for i := range height * width * channels {
		ch, y, x := i/(height*width), i/width%height, i%width
		if !first {
			y, x, ch = i/(width*channels), i/channels%width, i%channels
		}
		v := at(ch, y, x)
		switch s.DType {
		case tensor.FP32:
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(v)))
		case tensor.FP64:
			t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(v))
		case tensor.Uint8:
			t.Data = append(t.Data, byte(math.Round(255*v)))
		default:
			return t, fmt.Errorf("a picture fills inputs of FP32, FP64 and UINT8")
		}
	}
	return t, t.Validate()
}
