package ops

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/tensor"
)

// FuzzRun gives functions options and tensors of any kind. Nothing may panic, and what comes out must be well formed
// and of bounded size. The text holds options as name=value lines; shape bytes choose the dimensions of the inputs in
// turn.
func FuzzRun(f *testing.F) {
	f.Add("nms", "iou=0.5\nscore=0.1\nmost=3", []byte{2, 4, 255, 2}, []byte("01234567890123456789012345678901"),
		[]byte(nil))
	f.Add("crop", "height=2\nwidth=3\nlayout=nchw", []byte{1, 2, 2, 2, 255, 3, 4}, []byte("0123456789"), []byte(nil))
	f.Add("resize", "height=2\nwidth=3\nfilter=nearest", []byte{1, 2, 2, 2}, []byte("0123456789"), []byte(nil))
	f.Add("reshape", "shape=2,-1\nwhole=true", []byte{3, 2}, []byte("0123"), []byte(nil))
	f.Add("threshold", "least=0.5\ncolumn=0", []byte{3, 2, 255, 3}, []byte("0123"), []byte(nil))
	f.Add("topk", "k=2", []byte{3, 2}, []byte("0123"), []byte(nil))
	f.Add("argmax", "", []byte{3, 2}, []byte("0123"), []byte(nil))
	f.Add("track", "lost=2", []byte{2, 4}, []byte("0123"), append([]byte{1}, make([]byte, 8)...))
	f.Add("crop", "height=2\nmultiple=2\nwidest=8\nto=nchw", []byte{1, 2, 2, 2, 255, 3, 4}, []byte("0123456789"),
		[]byte(nil))
	f.Add("resize", "longest=3\nmultiple=2\nmean=1,2\nscale=0.5", []byte{1, 2, 5, 2}, []byte("0123456789"), []byte(nil))
	f.Add("regions", "least=0\nscore=0\nsmallest=1\nmost=2", []byte{2, 1, 3, 3}, []byte("0123456789"), []byte(nil))
	f.Add("constant", "datatype=INT64\nshape=1,2\nvalues=1,2", []byte{2}, []byte("0123"), []byte(nil))
	f.Add("ctc", "alphabet=ab", []byte{2, 4, 3}, []byte("0123456789"), []byte(nil))
	f.Add("normalize", "mean=1,2,3", []byte{2, 3}, []byte("0123456789"), []byte(nil))
	f.Add("window", "length=3", []byte{2, 2, 1}, []byte("0123"), append([]byte{1, 4}, make([]byte, 11)...))
	f.Add("crop", "height=1\nwidth=1", []byte{250, 0, 1, 1, 255, 250, 4, 255, 250}, []byte("0123"), []byte(nil))
	f.Fuzz(func(t *testing.T, name, options string, shapes, data, state []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(name)+len(options)+len(shapes)+len(data)+len(state)))()
		with := map[string]string{}
		for _, line := range strings.Split(options, "\n") {
			if k, v, ok := strings.Cut(line, "="); ok {
				with[k] = v
			}
		}
		fn, err := New(name, with)
		if err != nil {
			return
		}
		var in []tensor.Tensor
		var specs []tensor.Spec
		for i, p := range fn.Inputs() {
			x := tensor.Tensor{Name: p.Name, DType: tensor.FP32, Shape: []int64{}}
			if len(p.DTypes) > 0 {
				x.DType = p.DTypes[len(data)%len(p.DTypes)]
			}
			for len(shapes) > 0 {
				d := shapes[0]
				if shapes = shapes[1:]; d == 255 {
					break
				}
				if x.Shape = append(x.Shape, int64(d)); d == 254 {
					x.Shape[len(x.Shape)-1] = 1 << 40
				}
			}
			n, err := tensor.Elements(x.Shape, 1<<12)
			if err != nil {
				return
			}
			x.Data = make([]byte, n*int64(x.DType.Size()))
			for k := range x.Data {
				if len(data) > 0 {
					x.Data[k] = data[(k+i)%len(data)]
				}
			}
			if p.Optional && len(x.Shape) == 0 {
				continue
			}
			in, specs = append(in, x), append(specs, tensor.Spec{Name: x.Name, DType: x.DType, Shape: x.Shape})
		}
		described, serr := fn.Specs(specs)
		for i := range described {
			if _, err := tensor.Elements(described[i].Shape, 1<<16); err != nil &&
				!strings.Contains(err.Error(), "negative") {
				return // large results are slow, not wrong
			}
		}
		r, err := fn.Run(&Call{Inputs: in, State: state})
		if err != nil {
			return
		}
		if serr != nil {
			t.Errorf("%s runs on %+v and cannot be described: %v", name, specs, serr)
			return
		}
		for i := range r.Outputs {
			x := &r.Outputs[i]
			if err := x.Validate(); err != nil {
				t.Error(err)
			}
			if n, err := tensor.Elements(x.Shape, maxElements); err != nil {
				t.Errorf("%s gives %d elements: %v", name, n, err)
			}
			if len(described[i].Shape) != len(x.Shape) {
				t.Errorf("%s is described as giving %v and gives %v", name, described[i].Shape, x.Shape)
			}
		}
		if r.State != nil {
			if _, err := fn.Run(&Call{Inputs: in, State: r.State}); err != nil {
				t.Errorf("%s cannot go on from its own state: %v", name, err)
			}
		}
	})
}

// FuzzTracks reads states: what is read is written back the same.
func FuzzTracks(f *testing.F) {
	f.Add(append([]byte{1}, make([]byte, 8)...))
	one := tracks{last: 7, list: []trackedBox{{id: 3, age: 2, missed: 1, box: box{0, 0, 1, 1}}}}
	f.Add(one.write())
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		if len(data) > 0 && len(data)%5 == 0 {
			data = binary.LittleEndian.AppendUint64(data, uint64(len(data)))
		}
		got, err := readTracks(data)
		if err == nil && data != nil && string(got.write()) != string(data) {
			t.Errorf("%x is written as %x", data, got.write())
		}
	})
}
