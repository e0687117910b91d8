package digits

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/demo/digits/nn"
)

// newNetwork makes a network from words, one per layer: pad2, avg4, max2, conv3x32 (size 3, 32 channels), dense64. The
// logits come last of themselves.
func newNetwork(layers string, rng *rand.Rand) (*nn.Net, error) {
	var specs []nn.Spec
	padded := false
	for _, word := range strings.Fields(layers) {
		name := strings.TrimRight(word, "0123456789x")
		args := strings.Split(word[len(name):], "x")
		var n [2]int
		for i := range min(len(args), 2) {
			n[i], _ = strconv.Atoi(args[i])
		}
		// ONNX Runtime 1.30 folds a border into the pooling after it, and then refuses it as too wide.
		if padded && name != "conv" {
			return nil, fmt.Errorf("network %q: %q after a pad: only conv may follow one", layers, word)
		}
		padded = name == "pad"
		switch {
		case name == "pad" && n[0] > 0:
			specs = append(specs, nn.Pad(n[0]))
		case name == "avg" && n[0] > 0:
			specs = append(specs, nn.AvgPool(n[0]))
		case word == "max2":
			specs = append(specs, nn.MaxPool())
		case name == "conv" && n[0]%2 == 1 && n[1] > 0:
			specs = append(specs, nn.Conv(n[0], n[1]))
		case name == "dense" && n[0] > 0:
			specs = append(specs, nn.Dense(n[0]))
		default:
			return nil, fmt.Errorf("network %q: no layer is written %q", layers, word)
		}
	}
	return nn.New(nn.Shape{C: 1, H: Size, W: Size}, rng, append(specs, nn.Logits(10))...), nil
}
