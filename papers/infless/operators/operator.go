package operators

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Operator is one operator of a graph, with all that its time depends on except the number of threads.
type Operator struct {
	Node   *pb.NodeProto // type and attributes
	Opset  int64         // version of its operator set
	Inputs []Operand
	// Footprint is about how many bytes the model touches in one run. It decides whether the operator finds its weights
	// in a cache. It is 0 for an operator with almost no weights.
	Footprint int64
}

// Operand is an input of an operator, or an input or output of a model.
type Operand struct {
	Absent   bool // optional and left out
	DType    onnxmodel.DType
	Shape    []int64
	Constant bool
	// Ints are the elements of a constant that parametrises the operator, such as axes; nil for weights.
	Ints []int64
}

// Bytes returns the size of the operand.
func (o *Operand) Bytes() int64 {
	n := int64(o.DType.Size())
	for _, d := range o.Shape {
		n *= d
	}
	return n
}

// Key identifies the operator and the number of its threads by a text with type, version, attributes and inputs.
// Operators with equal keys take equal time on one machine. Weights are marked by a star, as only their shape counts.
// Keys are a stable format.
func (o *Operator) Key(threads int) string {
	var b strings.Builder
	if o.Node.Domain != "" {
		b.WriteString(o.Node.Domain + ".")
	}
	fmt.Fprintf(&b, "%s@%d{", o.Node.OpType, o.Opset)
	attrs := slices.Clone(o.Node.Attribute)
	slices.SortFunc(attrs, func(x, y *pb.AttributeProto) int { return cmp.Compare(x.Name, y.Name) })
	for i, a := range attrs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%s", a.Name, value(a))
	}
	b.WriteString("}(")
	for i := range o.Inputs {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(o.Inputs[i].String())
	}
	b.WriteString(")>")
	for _, out := range o.Node.Output {
		if out == "" {
			b.WriteByte('-')
		} else {
			b.WriteByte('+')
		}
	}
	if o.Footprint > 0 {
		fmt.Fprintf(&b, " among=%dk", o.Footprint>>10)
	}
	fmt.Fprintf(&b, " threads=%d", threads)
	return b.String()
}

// negligibleWeights is the size in bytes below which weights do not matter.
const negligibleWeights = 4 << 10

// computeBound are the operators that multiply at the full width of the processor. The others run between them.
var computeBound = map[string]bool{
	"Conv": true, "FusedConv": true, "ConvTranspose": true, "MatMul": true, "FusedMatMul": true, "Gemm": true,
	"FusedGemm": true,
	"LSTM":      true, "GRU": true, "RNN": true, "Attention": true,
}

// weights returns the bytes of constants that a run of the operator touches. Of a table these are the rows that it
// looks up.
func (o *Operator) weights() int64 {
	if o.Node.OpType == "Gather" && len(o.Inputs) == 2 && len(o.Inputs[0].Shape) > 0 {
		table, at := &o.Inputs[0], &o.Inputs[1]
		rows := at.Bytes() / int64(max(1, at.DType.Size()))
		return min(table.Bytes(), table.Bytes()/max(1, table.Shape[0])*rows)
	}
	var n int64
	for i := range o.Inputs {
		if in := &o.Inputs[i]; in.Constant && in.Ints == nil {
			n += in.Bytes()
		}
	}
	return n
}

// String writes the operand as in a key.
func (o *Operand) String() string {
	if o.Absent {
		return "-"
	}
	out := o.DType.String() + dims(o.Shape)
	if o.Constant {
		out += "*"
	}
	if o.Ints != nil {
		out += "=" + dims(o.Ints)
	}
	return out
}

func dims(v []int64) string {
	parts := make([]string, len(v))
	for i, d := range v {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// value writes an attribute as in a key. Tensors and graphs, which may be long, are written as a hash.
func value(a *pb.AttributeProto) string {
	switch a.Type {
	case pb.AttributeProto_FLOAT:
		return strconv.FormatFloat(float64(a.F), 'g', -1, 32)
	case pb.AttributeProto_INT:
		return strconv.FormatInt(a.I, 10)
	case pb.AttributeProto_STRING:
		return strconv.Quote(string(a.S))
	case pb.AttributeProto_FLOATS:
		return fmt.Sprint(a.Floats)
	case pb.AttributeProto_INTS:
		return dims(a.Ints)
	case pb.AttributeProto_STRINGS:
		return fmt.Sprintf("%q", a.Strings)
	}
	return digest(a)
}
