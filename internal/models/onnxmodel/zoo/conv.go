package zoo

import "github.com/sluice-serving/sluice/internal/models/onnxmodel"

func (b *net) picture(size int64) string {
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, 3, size, size)
	return "input"
}

// pooled averages every channel.
func (b *net) pooled(x string) string {
	return b.op("Flatten", []string{b.op("GlobalAveragePool", []string{x})}, onnxmodel.AttrInt("axis", 1))
}

func cnn(b *net) {
	x := b.picture(32)
	x = b.relu(b.conv(x, 3, 32, 3, 1, 1))
	x = b.maxPool(b.relu(b.conv(x, 32, 32, 3, 1, 1)))
	x = b.relu(b.conv(x, 32, 64, 3, 1, 1))
	x = b.maxPool(b.relu(b.conv(x, 64, 64, 3, 1, 1)))
	x = b.op("Flatten", []string{x}, onnxmodel.AttrInt("axis", 1))
	b.classify(b.relu(b.dense(x, 64*8*8, 256)), 256, 10)
}

func inception(b *net) {
	x := b.maxPool(b.relu(b.conv(b.picture(48), 3, 32, 3, 1, 1)))
	block := func(x string, in int64) string {
		one := b.relu(b.conv(x, in, 32, 1, 1, 1))
		three := b.relu(b.conv(b.relu(b.conv(x, in, 32, 1, 1, 1)), 32, 48, 3, 1, 1))
		five := b.relu(b.conv(b.relu(b.conv(x, in, 16, 1, 1, 1)), 16, 32, 5, 1, 1))
		pool := b.op("AveragePool", []string{x}, onnxmodel.AttrInts("kernel_shape", 3, 3),
			onnxmodel.AttrInts("strides", 1, 1), onnxmodel.AttrInts("pads", 1, 1, 1, 1))
		return b.op("Concat", []string{
			one, three, five, b.relu(b.conv(pool, in, 16, 1, 1, 1)),
		}, onnxmodel.AttrInt("axis", 1))
	}
	x = b.maxPool(block(x, 32))
	b.classify(b.pooled(block(x, 128)), 128, 10)
}

func mobilenet(b *net) {
	relu6 := func(x string) string { return b.op("Clip", []string{x, b.scalar(0), b.scalar(6)}) }
	x := relu6(b.norm(b.conv(b.picture(64), 3, 16, 3, 2, 1), 16))
	in := int64(16)
	for _, layer := range [][2]int64{{32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {256, 2}} {
		out, stride := layer[0], layer[1]
		x = relu6(b.norm(b.conv(x, in, in, 3, stride, in), in))
		x = relu6(b.norm(b.conv(x, in, out, 1, 1, 1), out))
		in = out
	}
	b.classify(b.pooled(x), in, 100)
}

// scalar adds a constant without dimensions.
func (b *net) scalar(v float32) string {
	name := b.name("s")
	b.Initializer(name, []float32{v})
	return name
}

func squeeze(b *net) {
	swish := func(x string) string { return b.op("HardSwish", []string{x}) }
	x := swish(b.norm(b.conv(b.picture(64), 3, 16, 3, 2, 1), 16))
	in := int64(16)
	for _, layer := range [][3]int64{{16, 32, 2}, {24, 64, 1}, {24, 72, 2}, {40, 120, 1}} {
		out, mid, stride := layer[0], layer[1], layer[2]
		y := swish(b.norm(b.conv(x, in, mid, 1, 1, 1), mid))
		y = swish(b.norm(b.conv(y, mid, mid, 5, stride, mid), mid))
		w := b.op("GlobalAveragePool", []string{y})
		w = b.relu(b.conv(w, mid, mid/4, 1, 1, 1))
		y = b.op("Mul", []string{y, b.op("Sigmoid", []string{b.conv(w, mid/4, mid, 1, 1, 1)})})
		y = b.norm(b.conv(y, mid, out, 1, 1, 1), out)
		if in == out && stride == 1 {
			y = b.op("Add", []string{x, y})
		}
		x, in = y, out
	}
	b.classify(b.pooled(x), in, 100)
}

func residual(b *net) {
	x := b.relu(b.norm(b.conv(b.picture(48), 3, 32, 3, 1, 1), 32))
	in := int64(32)
	for _, layer := range [][2]int64{{32, 1}, {64, 2}, {64, 1}, {128, 2}} {
		out, stride := layer[0], layer[1]
		y := b.relu(b.norm(b.conv(x, in, out, 3, stride, 1), out))
		y = b.norm(b.conv(y, out, out, 3, 1, 1), out)
		if in != out {
			x = b.norm(b.conv(x, in, out, 1, stride, 1), out)
		}
		x, in = b.relu(b.op("Add", []string{y, x})), out
	}
	b.classify(b.pooled(x), in, 10)
}

func wave(b *net) {
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, 1, 4096)
	x := b.relu(b.norm(b.conv1("input", 1, 32, 9, 4), 32))
	x = b.op("MaxPool", []string{x}, onnxmodel.AttrInts("kernel_shape", 2), onnxmodel.AttrInts("strides", 2))
	x = b.relu(b.norm(b.conv1(x, 32, 64, 5, 2), 64))
	x = b.relu(b.norm(b.conv1(x, 64, 128, 5, 2), 128))
	x = b.op("ReduceMean", []string{x}, onnxmodel.AttrInts("axes", 2), onnxmodel.AttrInt("keepdims", 0))
	b.classify(x, 128, 50)
}
