package samples

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures that people have
	_ "image/png"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// maxPixels bounds a picture, before it is unpacked.
const maxPixels = 1 << 26

// Decode makes one item of an input from a file: .npy and .json by their names, pictures by their content, other bytes
// as they are.
func Decode(name string, data []byte, s *tensor.Spec, batched bool) (tensor.Tensor, error) {
	switch path.Ext(name) {
	case ".npy":
		t, err := decodeNPY(data, s)
		return withItems(t, s, batched), err
	case ".json":
		t, err := DecodeJSON(string(data), s)
		return withItems(t, s, batched), err
	}
	return FromFile(data, s)
}

// withItems puts the dimension of items before a tensor that lacks it.
func withItems(t tensor.Tensor, s *tensor.Spec, batched bool) tensor.Tensor {
	if batched && len(t.Shape) == len(s.Shape)-1 {
		t.Shape = append([]int64{1}, t.Shape...)
	}
	return t
}

// OneItem is the shape of one item: variable dimensions are 1.
func OneItem(shape []int64) []int64 {
	out := slices.Clone(shape)
	for k := range out {
		if out[k] < 0 {
			out[k] = 1
		}
	}
	return out
}

// FromFile makes one item of an input of a file's content: one BYTES element, a picture, or raw bytes.
func FromFile(data []byte, s *tensor.Spec) (tensor.Tensor, error) {
	t := tensor.Tensor{Name: s.Name, DType: s.DType, Shape: OneItem(s.Shape)}
	if s.DType == tensor.Bytes {
		t.Data = tensor.AppendBytes(nil, data)
		return t, t.Validate()
	}
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		if c.Width*c.Height > maxPixels {
			return t, fmt.Errorf("the picture has %d x %d points, at most %d are taken", c.Width, c.Height, maxPixels)
		}
		picture, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			return t, err
		}
		return fromPicture(t, s, picture)
	}
	t.Data = data
	if open := openDimension(s.Shape); open >= 0 {
		t.Shape[open] = 1
		if n, err := tensor.Elements(t.Shape, math.MaxInt32); err == nil && n > 0 {
			each := n * int64(s.DType.Size())
			if int64(len(data))%each != 0 {
				return t, fmt.Errorf("%d bytes are no picture, and no whole number of %s %v, which have %d bytes each",
					len(data), s.DType, tensor.Dims(t.Shape), each)
			}
			t.Shape[open] = int64(len(data)) / each
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
	first := s.Shape[n-3] == 1 || s.Shape[n-3] == 3 || s.Shape[n-3] < 0 && s.Shape[n-1] > 3
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
	if t.DType != tensor.FP32 && t.DType != tensor.FP64 && t.DType != tensor.Uint8 {
		return t, fmt.Errorf("a picture fills inputs of FP32, FP64 and UINT8")
	}
	for i := range height * width * channels {
		ch, y, x := i/(height*width), i/width%height, i%width
		if !first {
			y, x, ch = i/(width*channels), i/channels%width, i%channels
		}
		v := at(ch, y, x)
		if t.DType == tensor.Uint8 {
			v = 255 * v
		}
		t.Data = appendNumber(t.Data, t.DType, v)
	}
	return t, t.Validate()
}

// appendNumber appends a number as an element, rounded where the type is whole.
func appendNumber(b []byte, d tensor.DType, v float64) []byte {
	le := binary.LittleEndian
	switch d {
	case tensor.FP32:
		return le.AppendUint32(b, math.Float32bits(float32(v)))
	case tensor.FP64:
		return le.AppendUint64(b, math.Float64bits(v))
	case tensor.Uint64:
		return le.AppendUint64(b, uint64(math.Round(v)))
	case tensor.Bool:
		if v != 0 {
			return append(b, 1)
		}
		return append(b, 0)
	}
	return le.AppendUint64(b, uint64(int64(math.Round(v))))[:len(b)+d.Size()]
}

// DecodeJSON makes an input of nested arrays of numbers or texts, or of one number or text.
func DecodeJSON(value string, s *tensor.Spec) (tensor.Tensor, error) {
	t := tensor.Tensor{Name: s.Name, DType: s.DType, Shape: OneItem(s.Shape)}
	value = strings.TrimSpace(strings.TrimPrefix(value, "\ufeff"))
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

// npyHeader reads the header of a .npy file, a literal of Python (the format's specification, NEP 1).
var npyHeader = regexp.MustCompile(
	`'descr':\s*'([<|=>][a-z][0-9]+)'.*'fortran_order':\s*(True|False).*'shape':\s*\(([0-9, ]*)\)`)

// npyTypes are the types of elements by their names in .npy files.
var npyTypes = map[string]tensor.DType{
	"<f4": tensor.FP32, "<f8": tensor.FP64, "<f2": tensor.FP16, "|b1": tensor.Bool,
	"|u1": tensor.Uint8, "<u2": tensor.Uint16, "<u4": tensor.Uint32, "<u8": tensor.Uint64,
	"|i1": tensor.Int8, "<i2": tensor.Int16, "<i4": tensor.Int32, "<i8": tensor.Int64,
}

// decodeNPY reads a .npy file. Numbers of another type than the input's are converted.
func decodeNPY(data []byte, s *tensor.Spec) (tensor.Tensor, error) {
	t := tensor.Tensor{Name: s.Name, DType: s.DType}
	if len(data) < 12 || string(data[:6]) != "\x93NUMPY" {
		return t, errors.New("is no .npy file")
	}
	length, at := int(binary.LittleEndian.Uint16(data[8:])), 10
	if data[6] > 1 {
		length, at = int(binary.LittleEndian.Uint32(data[8:])), 12
	}
	if length < 0 || at+length > len(data) {
		return t, errors.New("the header of the .npy file does not end")
	}
	m := npyHeader.FindSubmatch(data[at : at+length])
	if m == nil {
		return t, fmt.Errorf("the header of the .npy file is %.80q", data[at:at+length])
	}
	from, known := npyTypes[string(m[1])]
	if !known || string(m[2]) == "True" {
		return t, fmt.Errorf("a .npy file of type %s, fortran_order %s is not read: save it as little-endian numbers "+
			"in C order", m[1], m[2])
	}
	t.Shape = []int64{}
	for word := range strings.SplitSeq(string(m[3]), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return t, err
		}
		t.Shape = append(t.Shape, n)
	}
	raw := tensor.Tensor{Name: s.Name, DType: from, Shape: t.Shape, Data: data[at+length:]}
	if err := raw.Validate(); err != nil {
		return t, err
	}
	if from == s.DType {
		return raw, nil
	}
	if s.DType.Size() == 0 || from == tensor.FP16 || s.DType == tensor.FP16 || s.DType == tensor.BF16 {
		return t, fmt.Errorf("the file has %s, the input takes %s", from, s.DType)
	}
	for size := from.Size(); len(raw.Data) > 0; raw.Data = raw.Data[size:] {
		v, _ := Number(from, raw.Data)
		t.Data = appendNumber(t.Data, t.DType, v)
	}
	return t, t.Validate()
}
