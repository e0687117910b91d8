package operators

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Names of the ends of a model of copies of an operator. Its only output makes the runtime answer.
const (
	tick = "tick"
	tock = "tock"
)

// copiesModel returns a model that has only copies of an operator, all on the same inputs but each with weights of its
// own. Nothing uses their outputs, so their memory belongs to the runtime, as within a model. With heat, a product of
// matrices runs before each copy: after a processor has multiplied at full width, it runs everything else more slowly
// for a while. An operator without a type has no copies.
func copiesModel(o *Operator, copies int, heat bool) *pb.ModelProto {
	g := onnxmodel.NewGraph("alone")
	for i := range o.Inputs {
		if in := &o.Inputs[i]; in.isModelInput() {
			g.Input(fmt.Sprintf("x%d", i), in.DType, in.Shape...)
		}
	}
	g.Input(tick, onnxmodel.Float32, 1)
	rng := rand.New(rand.NewPCG(1, 0x616c6f6e65))
	m := g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
	switch {
	case o.Node.OpType == "":
	case o.Node.Domain == "":
		m.OpsetImport[0].Version = o.Opset
	default:
		m.OpsetImport = append(m.OpsetImport, &pb.OperatorSetIdProto{Domain: o.Node.Domain, Version: o.Opset})
	}
	if heat {
		g.InitializerRaw("left", onnxmodel.Float32, fill(&heatMatrices[0], rng), heatMatrices[0].Shape...)
		g.InitializerRaw("right", onnxmodel.Float32, fill(&heatMatrices[1], rng), heatMatrices[1].Shape...)
	}
	for c := range copies {
		if heat {
			g.Node("MatMul", []string{"left", "right"}, []string{fmt.Sprintf("heat%d", c)})
		}
		if o.Node.OpType == "" {
			continue
		}
		n := &pb.NodeProto{
			Name: fmt.Sprintf("copy%d", c), OpType: o.Node.OpType, Domain: o.Node.Domain, Attribute: o.Node.Attribute,
		}
		for i := range o.Inputs {
			in := &o.Inputs[i]
			name := fmt.Sprintf("x%d", i)
			switch {
			case in.Absent:
				name = ""
			case !in.isModelInput():
				name = fmt.Sprintf("w%d_%d", c, i)
				g.InitializerRaw(name, in.DType, fill(in, rng), in.Shape...)
			case c > 0 && o.accumulatesInto() == i:
				name = fmt.Sprintf("y%d_0", c-1)
			}
			n.Input = append(n.Input, name)
		}
		for k, out := range o.Node.Output {
			if out != "" {
				out = fmt.Sprintf("y%d_%d", c, k)
			}
			n.Output = append(n.Output, out)
		}
		m.Graph.Node = append(m.Graph.Node, n)
	}
	g.Node("Identity", []string{tick}, []string{tock}).Output(tock, onnxmodel.Float32, 1)
	return m
}

// callModel returns a model with the inputs and outputs of another that does almost nothing between them.
func callModel(at *BatchGraph) *pb.ModelProto {
	g := onnxmodel.NewGraph("call")
	for i, in := range at.Inputs {
		g.Input(fmt.Sprintf("x%d", i), in.DType, at.declared(in.Shape)...)
	}
	for i, out := range at.Outputs {
		y := fmt.Sprintf("y%d", i)
		if !at.Batched {
			g.InitializerRaw("c"+y, out.DType, make([]byte, out.Bytes()), out.Shape...).Node("Identity",
				[]string{"c" + y}, []string{y})
		} else {
			rest := out.Shape[1:]
			g.InitializerInt64("rest"+y, rest, int64(len(rest))).
				Node("Shape", []string{"x0"}, []string{"items" + y}, onnxmodel.AttrInt("start", 0),
					onnxmodel.AttrInt("end", 1)).
				Node("Concat", []string{"items" + y, "rest" + y}, []string{"shape" + y}, onnxmodel.AttrInt("axis", 0)).
				Node("ConstantOfShape", []string{"shape" + y}, []string{y}, zero(out.DType))
		}
		g.Output(y, out.DType, at.declared(out.Shape)...)
	}
	return g.Model(onnxmodel.DefaultOpset, onnxmodel.DefaultIR)
}

// declared returns a shape as the model's file declares it.
func (at *BatchGraph) declared(shape []int64) []int64 {
	if !at.Batched {
		return shape
	}
	return append([]int64{onnxmodel.Symbolic}, shape[1:]...)
}

// zero returns the value that ConstantOfShape fills with.
func zero(d onnxmodel.DType) onnxmodel.Attr {
	t := &pb.TensorProto{DataType: int32(d), Dims: []int64{1}, RawData: make([]byte, d.Size())}
	return &pb.AttributeProto{Name: "value", Type: pb.AttributeProto_TENSOR, T: t}
}

// heatMatrices are the matrices whose product runs before copies.
var heatMatrices = [2]Operand{
	{DType: onnxmodel.Float32, Shape: []int64{32, 256}}, {DType: onnxmodel.Float32, Shape: []int64{256, 256}},
}

// isModelInput reports whether the operand is an input of the model. Values without dimensions are constants instead.
func (o *Operand) isModelInput() bool { return !o.Absent && !o.Constant && len(o.Shape) > 0 }

// accumulatesInto returns the index of the input that a convolution adds its result to, or -1. Within a model that
// input is overwritten. The runtime would copy an input of the model first, so each copy takes the result of the one
// before.
func (o *Operator) accumulatesInto() int {
	if (o.Node.OpType == "Conv" || o.Node.OpType == "FusedConv") && len(o.Inputs) > 3 && !o.Inputs[3].Absent {
		return 3
	}
	return -1
}

// fill returns the bytes of a constant. Integers that parametrise the operator keep their values; weights are random.
func fill(o *Operand, rng *rand.Rand) []byte {
	n := o.Bytes() / int64(max(1, o.DType.Size()))
	raw := make([]byte, 0, o.Bytes())
	for i := range n {
		switch {
		case o.Ints != nil && o.DType == onnxmodel.Int64:
			raw = binary.LittleEndian.AppendUint64(raw, uint64(o.Ints[i]))
		case o.Ints != nil && o.DType == onnxmodel.Int32:
			raw = binary.LittleEndian.AppendUint32(raw, uint32(o.Ints[i]))
		case o.DType == onnxmodel.Float32:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(0.1*(rng.Float32()-0.3)))
		case o.DType == onnxmodel.Float64:
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(0.1*(rng.Float64()-0.3)))
		default:
			raw = append(raw, make([]byte, o.DType.Size())...)
		}
	}
	return raw
}

// inputs returns random inputs for the model of an operator. Integers are 0 or 1, because they are usually indices.
func inputs(o *Operator) ([]tensor.Tensor, error) {
	rng := rand.New(rand.NewPCG(2, 0x616c6f6e65))
	var out []tensor.Tensor
	for i := range o.Inputs {
		in := &o.Inputs[i]
		if !in.isModelInput() {
			continue
		}
		t, err := random(fmt.Sprintf("x%d", i), in, rng)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	one := Operand{DType: onnxmodel.Float32, Shape: []int64{1}}
	t, err := random(tick, &one, rng)
	return append(out, t), err
}

// random returns a random tensor: floats in [0, 1), integers 0 or 1.
func random(name string, o *Operand, rng *rand.Rand) (tensor.Tensor, error) {
	d := tensor.ParseDType(o.DType.String())
	if d.Size() == 0 {
		return tensor.Tensor{}, fmt.Errorf("values of type %s cannot be made up", o.DType)
	}
	t := tensor.Tensor{Name: name, DType: d, Shape: o.Shape, Data: make([]byte, 0, o.Bytes())}
	for range o.Bytes() / int64(d.Size()) {
		switch d {
		case tensor.FP32:
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(rng.Float32()))
		case tensor.FP64:
			t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(rng.Float64()))
		case tensor.FP16:
			t.Data = binary.LittleEndian.AppendUint16(t.Data, 0x3800|uint16(rng.Uint32N(1<<10)))
		case tensor.BF16:
			t.Data = binary.LittleEndian.AppendUint16(t.Data, 0x3f00|uint16(rng.Uint32N(1<<7)))
		default:
			var b [8]byte
			b[0] = byte(rng.Uint32N(2))
			t.Data = append(t.Data, b[:d.Size()]...)
		}
	}
	return t, nil
}
