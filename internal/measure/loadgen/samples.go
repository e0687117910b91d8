package loadgen

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

// Samples are inputs to send, with labels where they are known. They are read-only once made.
type Samples struct {
	Count  int
	inputs []column
	labels []int64
	output string // the output whose rows are compared with labels
}

// column is one input for all samples.
type column struct {
	name  string
	dtype tensor.DType
	shape []int64 // of one sample, without the batch dimension
	data  []byte
	open  []int // dimensions of shape that follow the length of a query, in random inputs
	row   int   // bytes of a sample, for types of a fixed size
	at    []int // for BYTES, the offset of each sample and the end of the last
}

// samplesFile is the content of samples.json.
type samplesFile struct {
	Inputs []struct {
		Name     string  `json:"name"`
		DataType string  `json:"datatype"`
		Shape    []int64 `json:"shape"` // of one sample, without the batch dimension
		File     string  `json:"file"`
	} `json:"inputs"`
	LabelOutput string `json:"label_output"`
	Labels      *struct {
		DataType string `json:"datatype"`
		File     string `json:"file"`
	} `json:"labels"`
	Count int `json:"count"`
}

// limits of a samples directory
const (
	maxSamples     = 10_000_000
	maxSampleBytes = 4 << 30
)

// LoadSamples reads samples.json in dir and the files that it names, which must be in dir too. An input's file has
// count samples one after another, in the protocol's binary layout. The labels' file has one little-endian INT64 for
// each sample. Errors name the file and the field.
func LoadSamples(dir string) (*Samples, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	defer root.Close()
	s, err := loadSamples(root)
	if err != nil {
		return nil, fmt.Errorf("samples %s: %w", dir, err)
	}
	return s, nil
}

func loadSamples(root *os.Root) (*Samples, error) {
	text, err := readFile(root, "samples.json", 1<<20)
	if err != nil {
		return nil, err
	}
	var f samplesFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("samples.json: %w", err)
	}
	if f.Count < 1 || f.Count > maxSamples {
		return nil, fmt.Errorf("samples.json: count is %d, want a number in [1, %d]", f.Count, maxSamples)
	}
	if len(f.Inputs) == 0 {
		return nil, errors.New("samples.json: inputs is empty")
	}
	s := &Samples{Count: f.Count, output: f.LabelOutput}
	for i, in := range f.Inputs {
		where := fmt.Sprintf("samples.json: inputs[%d] %q", i, in.Name)
		c := column{name: in.Name, dtype: tensor.ParseDType(in.DataType), shape: in.Shape}
		if in.Name == "" {
			return nil, fmt.Errorf("%s: has no name", where)
		}
		if c.dtype == tensor.Invalid {
			return nil, fmt.Errorf("%s: unknown datatype %q", where, in.DataType)
		}
		per, err := tensor.Elements(in.Shape, maxSampleBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if per == 0 {
			return nil, fmt.Errorf("%s: shape %v has no elements", where, in.Shape)
		}
		if c.data, err = readFile(root, in.File, maxSampleBytes); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if err := c.index(f.Count, per); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		s.inputs = append(s.inputs, c)
	}
	if f.Labels != nil {
		if f.Labels.DataType != "INT64" {
			return nil, fmt.Errorf("samples.json: labels.datatype is %q, want INT64", f.Labels.DataType)
		}
		if f.LabelOutput == "" {
			return nil, errors.New("samples.json: label_output is empty, want the output to compare with labels")
		}
		raw, err := readFile(root, f.Labels.File, maxSamples*8)
		if err != nil {
			return nil, fmt.Errorf("samples.json: labels: %w", err)
		}
		if len(raw) != f.Count*8 {
			return nil, fmt.Errorf("samples.json: labels: %s has %d bytes, want %d for %d samples", f.Labels.File,
				len(raw), f.Count*8, f.Count)
		}
		s.labels = make([]int64, f.Count)
		for i := range s.labels {
			s.labels[i] = int64(binary.LittleEndian.Uint64(raw[i*8:]))
		}
	}
	return s, nil
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return b, nil
}

// index computes where samples begin in data. Each has per elements.
func (c *column) index(count int, per int64) error {
	if size := c.dtype.Size(); size > 0 {
		row := per * int64(size)
		if row > maxSampleBytes || int64(len(c.data)) != row*int64(count) {
			return fmt.Errorf("%d bytes of data, want %d samples of %d bytes", len(c.data), count, row)
		}
		c.row = int(row)
		return nil
	}
	c.at = make([]int, 1, count+1)
	n, at := int64(0), 0
	err := tensor.EachBytes(c.data, func(e []byte) {
		at += 4 + len(e)
		if n++; n%per == 0 {
			c.at = append(c.at, at)
		}
	})
	if err != nil {
		return err
	}
	if n != per*int64(count) {
		return fmt.Errorf("%d elements of data, want %d samples of %d", n, count, per)
	}
	return nil
}

// Labelled reports whether the samples have labels.
func (s *Samples) Labelled() bool { return s.labels != nil }

// Tensors returns the inputs of a query of items consecutive samples from first on. After the last sample the first
// follows. Data may be shared with the samples and must not be changed.
func (s *Samples) Tensors(first, items int) []tensor.Tensor {
	out := make([]tensor.Tensor, len(s.inputs))
	shapes := 0
	for i := range s.inputs {
		shapes += 1 + len(s.inputs[i].shape)
	}
	room := make([]int64, 0, shapes)
	for i := range s.inputs {
		c := &s.inputs[i]
		from := len(room)
		room = append(append(room, int64(items)), c.shape...)
		out[i] = tensor.Tensor{
			Name: c.name, DType: c.dtype, Shape: room[from:len(room):len(room)],
			Data: c.rows(first%s.Count, items, s.Count),
		}
	}
	return out
}

func (c *column) rows(first, items, count int) []byte {
	bounds := func(from, to int) []byte {
		if c.at != nil {
			return c.data[c.at[from]:c.at[to]]
		}
		return c.data[from*c.row : to*c.row]
	}
	if first+items <= count {
		return bounds(first, first+items)
	}
	var out []byte
	for items > 0 {
		n := min(items, count-first)
		out = append(out, bounds(first, first+n)...)
		first, items = 0, items-n
	}
	return out
}

// Judgement says how much of an answer is right.
type Judgement struct {
	Right, Items int  // items answered rightly, of those whose right answer is known; 0 of 0 when nothing is known
	Whole        bool // whether the whole answer is right
}

// Right judges the answer to the query of items samples from first on. A row is right when the label output is the
// sample's label or, if it has several numbers, the index of the largest one is. Nothing is known when there are no
// labels or the outputs do not tell.
func (s *Samples) Right(outputs []tensor.Tensor, first, items int) (j Judgement) {
	if s.labels == nil {
		return Judgement{}
	}
	for i := range outputs {
		t := &outputs[i]
		if t.Name != s.output {
			continue
		}
		size := t.DType.Size()
		if size == 0 || items == 0 || len(t.Data)%(size*items) != 0 || len(t.Data) == 0 {
			return Judgement{}
		}
		per := len(t.Data) / size / items
		for r := range items {
			got, ok := samples.Class(t.DType, t.Data[r*per*size:(r+1)*per*size])
			if !ok {
				return Judgement{}
			}
			if got == s.labels[(first+r)%s.Count] {
				j.Right++
			}
		}
		j.Items, j.Whole = items, j.Right == items
		return j
	}
	return Judgement{}
}

// Synthetic returns count samples of random inputs for a model: see syntheticData. specs are the model's inputs with
// the batch dimension first; other variable dimensions follow the lengths of queries, and are 1 without. Masks are
// inputs that are all 1. The same seed gives the same samples.
func Synthetic(specs []tensor.Spec, count int, seed uint64, masks ...string) (*Samples, error) {
	if count < 1 || count > maxSamples {
		return nil, fmt.Errorf("synthetic samples: count is %d, want a number in [1, %d]", count, maxSamples)
	}
	if len(specs) == 0 {
		return nil, errors.New("synthetic samples: the model has no inputs")
	}
	s := &Samples{Count: count}
	r := newSyntheticData(seed)
	for _, in := range specs {
		c := column{name: in.Name, dtype: in.DType}
		for i, d := range in.Shape {
			if i == 0 {
				continue
			}
			if d < 0 {
				c.open = append(c.open, i-1)
			}
			c.shape = append(c.shape, max(1, d))
		}
		per, err := tensor.Elements(c.shape, maxSampleBytes/8/int64(count))
		if err != nil {
			return nil, fmt.Errorf("synthetic samples: input %q: %w", in.Name, err)
		}
		c.data = r.fill(in.DType, int(per)*count)
		if slices.Contains(masks, in.Name) && in.DType.Whole() {
			size := in.DType.Size()
			for k := range c.data {
				c.data[k] = 0
				if k%size == 0 {
					c.data[k] = 1
				}
			}
		}
		if err := c.index(count, per); err != nil {
			return nil, fmt.Errorf("synthetic samples: input %q: %w", in.Name, err)
		}
		s.inputs = append(s.inputs, c)
	}
	return s, nil
}
