package shapes

// rule returns an operator's outputs.
type rule func(*node) ([]Tensor, error)

// of is a rule that begins with the first input, which has to be there.
func of(f func(n *node, x *Tensor) ([]Tensor, error)) rule {
	return func(n *node) ([]Tensor, error) {
		x, err := n.input(0)
		if err != nil {
			return nil, err
		}
		return f(n, x)
	}
}

// rules are the operators by name. Those of ONNX Runtime that share a standard one's name differ in how channels lie,
// not in shapes, but for the ones on blocks, whose channels are filled up to whole blocks.
var rules = table(map[string]rule{
	"MatMul": matmul, "FusedMatMul": matmul, "Gemm": gemm, "FusedGemm": gemm,
	"Conv": conv, "FusedConv": conv, "MaxPool": pool, "AveragePool": pool, "LpPool": pool,
	"GlobalAveragePool": globalPool, "GlobalMaxPool": globalPool, "ReorderInput": reorderInput,
	"ReorderOutput": reorderOutput,
	"Concat":        of(concat), "Reshape": of(reshape), "Transpose": of(transpose), "Flatten": of(flatten),
	"Squeeze": of(squeeze), "Unsqueeze": of(unsqueeze),
	"Split": of(split), "Slice": of(slice), "Gather": gather, "Expand": of(expand), "Pad": of(pad), "Tile": of(tile),
	"Shape": of(shapeOf), "Constant": constantNode, "ConstantOfShape": constantOfShape, "Cast": of(cast),
	"ArgMax": of(argmax), "ArgMin": of(argmax), "LSTM": recurrent, "GRU": recurrent, "RNN": recurrent,
	"Attention": attention,
}, map[string][]string{
	"like": {
		"Relu", "Sigmoid", "Tanh", "Clip", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Selu", "PRelu", "Softplus",
		"Mish", "Erf", "Exp", "Log", "Sqrt",
		"Reciprocal", "Neg", "Abs", "Floor", "Ceil", "Round", "Sin", "Cos", "Not", "Identity", "Dropout", "Softmax",
		"LogSoftmax", "LRN", "CumSum",
		"BatchNormalization", "InstanceNormalization", "LayerNormalization", "SimplifiedLayerNormalization",
		"SkipLayerNormalization",
		"SkipSimplifiedLayerNormalization", "Gelu", "FastGelu", "BiasGelu", "QuickGelu",
	},
	"broadcast": {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean", "And", "Or", "Xor"},
	"compare":   {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"},
	"reduce": {
		"ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
		"ReduceLogSumExp",
	},
})

// families are the rules that many operators share.
var families = map[string]rule{"like": of(like), "broadcast": broadcast, "compare": compare, "reduce": of(reduce)}

func table(single map[string]rule, shared map[string][]string) map[string]rule {
	for family, names := range shared {
		for _, name := range names {
			single[name] = families[family]
		}
	}
	single["Where"] = where
	return single
}

// one is the answer of an operator with one output.
func one(t Tensor, err error) ([]Tensor, error) { return []Tensor{t}, err }
