package digits

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/models/digits/nn"
)

// newNetwork makes a network for whole pictures from words, one per layer: avg2, max2, conv3x32 (size 3, 32 channels).
// The layer nn.Locate is added at the end.
func newNetwork(layers string, classes int, rng *rand.Rand) (*nn.Net, error) {
	var specs []nn.Spec
	for _, word := range strings.Fields(layers) {
		name := strings.TrimRight(word, "0123456789x")
		args := strings.Split(word[len(name):], "x")
		var n [2]int
		for i := range min(len(args), 2) {
			n[i], _ = strconv.Atoi(args[i])
		}
		switch {
		case name == "avg" && n[0] > 0:
			specs = append(specs, nn.AvgPool(n[0]))
		case word == "max2":
			specs = append(specs, nn.MaxPool())
		case name == "conv" && n[0]%2 == 1 && n[1] > 0:
			specs = append(specs, nn.Conv(n[0], n[1]))
		default:
			return nil, fmt.Errorf("network %q: no layer is written %q", layers, word)
		}
	}
	return nn.New(nn.Shape{C: 1, H: Size, W: Size}, rng, append(specs, nn.Locate(classes))...), nil
}
