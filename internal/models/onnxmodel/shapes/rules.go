package shapes

// rule returns an operator's outputs.
type rule func(*node) ([]Tensor, error)

// withInput makes a rule of a function that takes the first input, which must exist.
func withInput(f func(n *node, x *Tensor) ([]Tensor, error)) rule {
	return func(n *node) ([]Tensor, error) {
		x, err := n.input(0)
		if err != nil {
			return nil, err
		}
		return f(n, x)
	}
}

// rules are the operators by name. Operators of ONNX Runtime with a standard name have the standard shapes and another
// memory layout. Those on blocks pad channels to whole blocks.
var rules = table(map[string]rule{
	"MatMul": matmul, "FusedMatMul": matmul, "Gemm": gemm, "FusedGemm": gemm,
	"Conv": conv, "FusedConv": conv, "MaxPool": pool, "AveragePool": pool, "LpPool": pool,
	"GlobalAveragePool": globalPool, "GlobalMaxPool": globalPool, "ReorderInput": reorderInput,
	"ReorderOutput": reorderOutput,
	"Concat":        withInput(concat), "Reshape": withInput(reshape), "Transpose": withInput(transpose),
	"Flatten": withInput(flatten),
	"Squeeze": withInput(squeeze), "Unsqueeze": withInput(unsqueeze),
	"Split": withInput(split), "Slice": withInput(slice), "Gather": gather, "Expand": withInput(expand),
	"Pad": withInput(pad), "Tile": withInput(tile),
	"Shape": withInput(shapeOf), "Constant": constantNode, "ConstantOfShape": constantOfShape, "Cast": withInput(cast),
	"ArgMax": withInput(argmax), "ArgMin": withInput(argmax), "LSTM": recurrent, "GRU": recurrent, "RNN": recurrent,
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
var families = map[string]rule{
	"like": withInput(sameShape), "broadcast": broadcast, "compare": compare, "reduce": withInput(reduce),
}

func table(single map[string]rule, shared map[string][]string) map[string]rule {
	for family, names := range shared {
		for _, name := range names {
			single[name] = families[family]
		}
	}
	single["Where"] = where
	return single
}

// single is the result of an operator with one output.
func single(t Tensor, err error) ([]Tensor, error) { return []Tensor{t}, err }
