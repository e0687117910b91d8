//go:build cgo

package onnx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// unlikely is the size that is guessed for a variable dimension of the first output whose shape must be learned.
const unlikely = 31

// maxShapes bounds how many output shapes a session remembers.
const maxShapes = 256

// session runs one variant in one slot. It is used by one goroutine at a time.
type session struct {
	m      *model
	s      *ort.DynamicAdvancedSession
	cancel *ort.RunOptions
	on     *pinned  // where its runs run
	join   [][]byte // by input: where the rows of several parts are joined
	ins    []ort.Value
	outs   []ort.Value
	data   [][]byte       // backing memory of outs, nil where the runtime allocates
	temp   []ort.Value    // values to release after the run
	pins   runtime.Pinner // memory of one run
	// scalars are outputs of unknown shape that had no dimensions when they were seen.
	scalars []bool
	// disproved are outputs that have had another shape than their file says.
	disproved []bool
	all       *selection            // every output
	some      map[string]*selection // by wanted
	wanted    []byte                // by output, and then by optional input, of one run: 1 or 0
}

func newSession(m *model, o *ort.SessionOptions) (*session, error) {
	s, err := ort.NewDynamicAdvancedSession(m.path, names(slices.Concat(m.inputs, m.optional)), names(m.outputs), o)
	if err != nil {
		return nil, err
	}
	cancel, err := ort.NewRunOptions()
	if err != nil {
		_ = s.Destroy()
		return nil, err
	}
	made := &session{
		m: m, s: s, cancel: cancel,
		join:    make([][]byte, len(m.inputs)),
		ins:     make([]ort.Value, len(m.inputs), len(m.inputs)+len(m.optional)),
		outs:    make([]ort.Value, len(m.outputs)),
		data:    make([][]byte, len(m.outputs)),
		scalars: make([]bool, len(m.outputs)), disproved: make([]bool, len(m.outputs)),
		some:   map[string]*selection{},
		wanted: make([]byte, len(m.outputs)+len(m.optional)),
	}
	whole := append(bytes.Repeat([]byte{1}, len(m.outputs)), make([]byte, len(m.optional))...)
	if made.all, err = made.selection(whole); err != nil {
		return nil, errors.Join(err, made.close())
	}
	return made, nil
}

func (s *session) close() error {
	return errors.Join(s.cancel.Destroy(), s.s.Destroy())
}

// grow makes room for n bytes of joined rows of input k.
func (s *session) grow(k int, n int64) []byte {
	if int64(len(s.join[k])) < n {
		s.join[k] = make([]byte, n)
	}
	return s.join[k][:n]
}

// run answers parts whose rows can be joined.
func (s *session) run(ctx context.Context, parts []dataplane.Portion, items int) error {
	defer s.release()
	for k := range s.m.inputs {
		v, err := s.gather(k, parts, items)
		if err != nil {
			return fmt.Errorf("input %q: %w", s.m.inputs[k].Name, err)
		}
		s.ins[k] = v
	}
	c, err := s.selected(parts)
	if err != nil {
		return err
	}
	if err := s.m.holds(c, items); err != nil {
		return err
	}
	for _, k := range c.given {
		v, err := s.gatherOptional(&s.m.optional[k], &parts[0])
		if err != nil {
			return fmt.Errorf("input %q: %w", s.m.optional[k].Name, err)
		}
		s.ins = append(s.ins, v)
	}
	shapes, key := s.outputShapes(c, parts, items)
	for _, k := range c.asked {
		if err := s.prepare(k, shapes[k]); err != nil {
			return fmt.Errorf("output %q: %w", s.m.outputs[k].Name, err)
		}
	}
	for tries := 0; ; tries++ {
		err := s.call(ctx, c)
		if err == nil {
			break
		}
		k, shape := s.unmade(c), []int64{}
		if k < 0 {
			var why error
			if k, shape, why = s.wantedShape(c, err, items); why != nil {
				return why
			}
		}
		if tries > len(s.m.outputs) {
			return err
		}
		shapes[k] = shape
		if err := s.prepare(k, shape); err != nil {
			return fmt.Errorf("output %q: %w", s.m.outputs[k].Name, err)
		}
		if len(c.shapes) >= maxShapes {
			clear(c.shapes)
		}
		c.shapes[key] = shapes
	}
	return s.scatter(c, parts, items)
}

// call runs the model for the outputs of a selection.
func (s *session) call(ctx context.Context, c *selection) error {
	if len(c.asked) == 0 { // all that is wanted are inputs
		return ctx.Err()
	}
	for i, k := range c.asked {
		c.outs[i] = s.outs[k]
	}
	run := s.callFor
	if len(s.ins) == 0 {
		run = s.callBound
	}
	err := s.on.on(func() error { return s.m.flushed(func() error { return run(ctx, c) }) })
	for i, k := range c.asked {
		s.outs[k] = c.outs[i]
	}
	clear(c.outs)
	return err
}

// callFor runs the model and stops it between two of its nodes when ctx ends.
func (s *session) callFor(ctx context.Context, c *selection) error {
	if ctx.Done() == nil {
		return c.s.Run(s.ins, c.outs)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = s.cancel.Terminate()
		close(stopped)
	})
	err := c.s.RunWithOptions(s.ins, c.outs, s.cancel)
	if !stop() {
		<-stopped
		_ = s.cancel.UnsetTerminate()
		if err != nil {
			return ctx.Err()
		}
	}
	return err
}

// callBound runs a model without inputs, for which the binding has no other way. Its outputs are to lie in our memory.
func (s *session) callBound(ctx context.Context, c *selection) error {
	b, err := s.s.CreateIoBinding()
	if err != nil {
		return err
	}
	defer func() { _ = b.Destroy() }()
	for i, k := range c.asked {
		p := &s.m.outputs[k]
		if c.outs[i] == nil {
			return fmt.Errorf("output %q is %s %v: a model without inputs is run where its file says the whole shape, "+
				"and for no texts", p.Name, p.DType, tensor.Dims(p.Shape))
		}
		if err := b.BindOutput(p.Name, c.outs[i]); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.s.RunWithBinding(b)
}

// unmade returns the output that the runtime allocated and the binding could not make a value of, -1 for none. It has
// no dimensions, and its file does not say so.
func (s *session) unmade(c *selection) int {
	for _, k := range c.asked {
		v := s.outs[k]
		if v == nil || s.data[k] != nil || !reflect.ValueOf(v).IsNil() {
			continue
		}
		s.outs[k] = nil
		if unknown := s.m.outputs[k].Shape == nil; unknown || s.disproved[k] {
			s.scalars[k] = unknown // where the file says otherwise, the runtime refuses it and says why
			return k
		}
	}
	return -1
}

// release releases the values and pins of one run.
func (s *session) release() {
	for _, v := range s.temp {
		_ = v.Destroy()
	}
	// Outputs that the runtime allocated are in outs only.
	for k, v := range s.outs {
		if v != nil && s.data[k] == nil && !slices.Contains(s.temp, v) {
			_ = v.Destroy()
		}
	}
	clear(s.temp)
	s.temp = s.temp[:0]
	clear(s.outs)
	clear(s.ins)
	s.ins = s.ins[:len(s.m.inputs)]
	clear(s.data)
	s.pins.Unpin()
}

// gather joins the parts' rows of input k. Rows that are shorter than those of the first part end in zeros.
func (s *session) gather(k int, parts []dataplane.Portion, items int) (ort.Value, error) {
	p := &s.m.inputs[k]
	first := input(&parts[0], k, p.Name)
	if p.DType == tensor.Bytes {
		return s.gatherText(k, parts, first, items)
	}
	shape, total := first.Shape, int64(len(first.Data))
	if len(parts) > 1 {
		shape = slices.Clone(first.Shape)
		shape[0] = int64(items)
		total = total / int64(parts[0].Items) * int64(items)
	}
	if total > maxTensorBytes {
		return nil, fmt.Errorf("%d bytes in one batch, the limit is %d", total, int64(maxTensorBytes))
	}
	if total == 0 {
		return s.empty(p, shape)
	}
	if len(parts) == 1 && uintptr(unsafe.Pointer(&first.Data[0]))%uintptr(p.DType.Size()) == 0 {
		return s.describe(shape, first.Data, p.ort)
	}
	buf := s.grow(k, total)
	row, rest := len(buf)/items, buf
	for i := range parts {
		t, n := input(&parts[i], k, p.Name), row*parts[i].Items
		if len(t.Data) == n {
			copy(rest, t.Data)
		} else {
			clear(rest[:n])
			shape[0] = t.Shape[0]
			copyCommon(rest[:n], shape, t.Data, t.Shape)
			shape[0] = int64(items)
		}
		rest = rest[n:]
	}
	return s.describe(shape, buf, p.ort)
}

// gatherOptional makes a value of an optional input of a part that runs alone.
func (s *session) gatherOptional(p *port, part *dataplane.Portion) (ort.Value, error) {
	t := input(part, -1, p.Name)
	switch {
	case p.DType == tensor.Bytes:
		v, err := newStrings(t.Shape)
		if err == nil {
			s.temp = append(s.temp, v)
			_, err = fillStrings(v, 0, t.Data)
		}
		return v, err
	case len(t.Data) == 0:
		return s.empty(p, t.Shape)
	}
	return s.describe(t.Shape, bytes.Clone(t.Data), p.ort) // the clients' bytes may lie at any address
}

// describe makes a value of the runtime for a tensor in Go memory, for one run. The memory is pinned meanwhile, because
// cgo requires it of memory that C code points to.
func (s *session) describe(shape []int64, data []byte, d ort.TensorElementDataType) (ort.Value, error) {
	s.pins.Pin(&data[0])
	var v ort.Value
	var err error
	if len(shape) == 0 {
		v, err = scalarOver(data, d)
	} else {
		v, err = ort.NewCustomDataTensor(shape, data, d)
	}
	if err != nil {
		return nil, err
	}
	s.temp = append(s.temp, v)
	return v, nil
}

// empty makes a tensor without elements, also of types for which the binding cannot.
func (s *session) empty(p *port, shape []int64) (ort.Value, error) {
	var v ort.Value
	var err error
	switch p.DType {
	case tensor.Bool:
		v, err = ort.NewEmptyTensor[bool](shape)
	case tensor.Uint8:
		v, err = ort.NewEmptyTensor[uint8](shape)
	case tensor.Uint16:
		v, err = ort.NewEmptyTensor[uint16](shape)
	case tensor.Uint32:
		v, err = ort.NewEmptyTensor[uint32](shape)
	case tensor.Uint64:
		v, err = ort.NewEmptyTensor[uint64](shape)
	case tensor.Int8:
		v, err = ort.NewEmptyTensor[int8](shape)
	case tensor.Int16:
		v, err = ort.NewEmptyTensor[int16](shape)
	case tensor.Int32:
		v, err = ort.NewEmptyTensor[int32](shape)
	case tensor.Int64:
		v, err = ort.NewEmptyTensor[int64](shape)
	case tensor.FP32:
		v, err = ort.NewEmptyTensor[float32](shape)
	case tensor.FP64:
		v, err = ort.NewEmptyTensor[float64](shape)
	default:
		unused := make([]byte, p.DType.Size())
		s.pins.Pin(&unused[0])
		v, err = emptyOf(unused, shape, p.ort)
	}
	if err != nil {
		return nil, err
	}
	s.temp = append(s.temp, v)
	return v, nil
}

// prepare prepares output k: in our own memory when the shape is known, else allocated by the runtime.
func (s *session) prepare(k int, shape []int64) error {
	s.outs[k], s.data[k] = nil, nil
	if shape == nil {
		return nil
	}
	p := &s.m.outputs[k]
	n, err := tensor.Elements(shape, maxTensorBytes/int64(p.DType.Size()))
	if err != nil {
		return err
	}
	if n == 0 {
		if p.half() { // which the binding could not return
			s.outs[k], err = s.empty(p, shape)
		}
		return err
	}
	data := make([]byte, n*int64(p.DType.Size()))
	v, err := s.describe(shape, data, p.ort)
	if err != nil {
		return err
	}
	s.outs[k], s.data[k] = v, data
	return nil
}

// outputShapes returns the shape of every output of a selection that is written into our memory, nil for the others,
// and the key in its shapes under which learned shapes are kept.
func (s *session) outputShapes(c *selection, parts []dataplane.Portion, items int) ([][]int64, string) {
	shapes := make([][]int64, len(s.m.outputs))
	var key string
	for _, k := range c.asked {
		p := &s.m.outputs[k]
		switch {
		case p.rowBytes >= 0 && !s.disproved[k]:
			shapes[k] = p.Shape
			if s.m.batched {
				shapes[k] = slices.Clone(p.Shape)
				shapes[k][0] = int64(items)
			}
		case s.scalars[k]:
			shapes[k] = []int64{}
		case p.half():
			// The shape of these outputs must be learned: beginning with no dimensions where the file does not say how
			// many there are.
			if key == "" {
				key = s.shapeKey(parts, items)
			}
			if known := c.shapes[key]; known != nil {
				shapes[k] = known[k]
				continue
			}
			// The runtime tells wrong shapes, not whose they are: each guess is another one.
			shapes[k] = append([]int64{}, p.Shape...)
			guess := unlikely + int64(k)
			for i, d := range shapes[k] {
				if d < 0 && (i > 0 || !s.m.batched) {
					shapes[k][i], guess = guess, 1
				}
			}
			if s.m.batched {
				shapes[k][0] = int64(items)
			}
		}
	}
	return shapes, key
}

// half reports whether the binding cannot return an output from the runtime, for want of a type of 16 bits.
func (p *port) half() bool { return p.DType == tensor.FP16 || p.DType == tensor.BF16 }

func (s *session) shapeKey(parts []dataplane.Portion, items int) string {
	var b []byte
	b = strconv.AppendInt(b, int64(items), 10)
	for k := range s.m.inputs {
		for at, d := range input(&parts[0], k, s.m.inputs[k].Name).Shape {
			if at == 0 && s.m.batched {
				continue // the items
			}
			b = append(b, 'x')
			b = strconv.AppendInt(b, d, 10)
		}
		b = append(b, ';')
	}
	return string(b)
}

// The runtime refuses an output of the wrong shape and names the one it wants. The second wording is that of its older
// versions.
var wrongShape = regexp.MustCompile(
	`has shape \{([-0-9,]*)\} but the computed output shape for this run is \{([-0-9,]*)\}` +
		`|shape verification failed\. Current shape:\{([-0-9,]*)\} Requested shape:\{([-0-9,]*)\}`)

// wantedShape returns the output that a failed run wanted in another shape, and that shape, or nil to leave it to the
// runtime. It returns -1 and an error when there is none. A file may be wrong about the shape of an output, or say the
// one that some inputs give.
func (s *session) wantedShape(c *selection, err error, items int) (int, []int64, error) {
	match := wrongShape.FindStringSubmatch(err.Error())
	if match == nil {
		return -1, nil, err
	}
	had, want := parseShape(match[1]+match[3]), parseShape(match[2]+match[4])
	wrong := -1
	for _, k := range c.asked {
		p := &s.m.outputs[k]
		if s.outs[k] == nil || !slices.Equal([]int64(s.outs[k].GetShape()), had) {
			continue
		}
		if s.m.batched && (len(want) == 0 || want[0] != int64(items)) {
			return -1, nil, notBatched(p.Name, want, items)
		}
		if p.Shape == nil || p.rowBytes < 0 && tensor.Fits(want, p.Shape) {
			return k, want, nil
		}
		if wrong < 0 && !tensor.Fits(want, p.Shape) {
			wrong = k
		}
	}
	if wrong < 0 {
		return -1, nil, err
	}
	if p := &s.m.outputs[wrong]; p.half() {
		return -1, nil, otherShape(p, want)
	}
	s.disproved[wrong] = true
	return wrong, nil, nil
}

// otherShape is the error for an output that can be had in the shape that its file says, and in no other one.
func otherShape(p *port, got []int64) error {
	return fmt.Errorf("output %q: the model gives the shape %v, and its file says %v: export the model with variable "+
		"dimensions where they depend on its inputs", p.Name, tensor.Dims(got), tensor.Dims(p.Shape))
}

// errNotBatched is wrapped where the outputs of a batch do not have as many rows as the batch has items.
var errNotBatched = errors.New("it does not batch, configure it without a batch dimension (max_batch_size: 0)")

func notBatched(name string, shape []int64, items int) error {
	return fmt.Errorf("output %q: the model gave shape %v for a batch of %d items: %w", name, tensor.Dims(shape), items,
		errNotBatched)
}

func parseShape(s string) []int64 {
	out := []int64{}
	if s == "" {
		return out
	}
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}
