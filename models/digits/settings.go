package digits

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sluice-serving/sluice/models/digits/nn"
)

// settings are everything that the ladder depends on. Format stands for this package's code.
type settings struct {
	Format   int
	Seed     uint64
	HeldOut  int
	Networks []network
	Variants []variant
}

// network is one trained network; several variants may use it.
type network struct {
	Name   string
	Layers string
	Stages []nn.Stage
	Batch  int
	Rate   float64
}

func (n *network) steps() int {
	t := nn.Training{Stages: n.Stages}
	return t.Steps()
}

// variant is the mean of networks over views.
type variant struct {
	Name     string
	Networks []string
	Views    int
}

// full returns the settings of the demo's ladder. Training begins with small pictures. They teach the shapes of digits
// at a fraction of the cost; without them training on larger ones makes no progress for a long time.
func full(seed uint64) settings {
	const (
		coarse = "avg2 conv3x16 max2 conv3x32 max2 conv3x48"
		slim   = "conv3x16 max2 conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64"
		deep   = "conv3x16 max2 conv3x32 max2 conv3x64 conv3x64 max2 conv3x96 conv3x96"
	)
	stages := []nn.Stage{{Size: 32, Steps: 300}, {Size: 64, Steps: 400}, {Size: 96, Steps: 60}}
	return settings{
		Format:  2,
		Seed:    seed,
		HeldOut: 1500,
		Networks: []network{
			{"coarse", coarse, stages, 32, 16e-3},
			{"slim", slim, stages, 32, 16e-3},
			{"deep-a", deep, stages, 32, 16e-3},
			{"deep-b", deep, stages, 32, 16e-3},
			{"deep-c", deep, stages, 32, 16e-3},
		},
		Variants: []variant{
			{"tiny", []string{"coarse"}, 1},
			{"small", []string{"slim"}, 1},
			{"medium", []string{"deep-a"}, 1},
			{"large", []string{"deep-a", "deep-b"}, 1},
			{"xlarge", []string{"deep-a", "deep-b", "deep-c"}, 2},
		},
	}
}

// hash returns a hash of settings, which are plain data.
func hash(s any) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("digits: settings are plain data: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
