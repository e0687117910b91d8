package digits

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// settings say everything that the ladder depends on, apart from this package's code, for which Format stands.
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
	Steps  int
	Batch  int
	Rate   float64
}

// variant is the mean of networks over views.
type variant struct {
	Name     string
	Networks []string
	Views    int
}

// full returns the settings of the demo's ladder.
func full(seed uint64) settings {
	return settings{
		Format:  1,
		Seed:    seed,
		HeldOut: 4000,
		Networks: []network{
			{"linear", "avg4", 800, 64, 1e-2},
			{"mlp", "avg2 dense64", 1500, 64, 4e-3},
			{"conv-s", "avg2 pad1 conv3x16 max2 conv3x16 max2", 1000, 64, 6e-3},
			{"conv-m", "pad2 conv3x16 max2 conv3x32 max2 conv3x32 max2 dense64", 700, 64, 5e-3},
			{"conv-l", "pad2 conv5x16 max2 conv3x64 max2 conv3x96 max2 dense96", 600, 64, 5e-3},
			{"conv-xl", "pad2 conv5x32 max2 conv3x96 max2 conv3x128 max2 dense128", 650, 64, 4e-3},
		},
		Variants: []variant{
			{"nano", []string{"linear"}, 1},
			{"tiny", []string{"mlp"}, 1},
			{"small", []string{"conv-s"}, 1},
			{"medium", []string{"conv-m"}, 1},
			{"large", []string{"conv-l"}, 1},
			{"xlarge", []string{"conv-xl"}, 1},
			{"huge", []string{"conv-l", "conv-xl"}, 20},
		},
	}
}

// hash names the settings.
func (s settings) hash() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("digits: settings are plain data: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
