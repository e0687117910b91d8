package training

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// settings are everything that a ladder depends on, beside the code.
type settings struct {
	Seed     uint64
	HeldOut  digits.HeldOut
	Networks []network
	Variants []digits.Variant
}

// network says how a network is trained.
type network struct {
	Name, Layers string
	Classes      int
	Fill         func(rng *rand.Rand, size int, x []float32) int // draws a picture and returns its class
	Stages       []nn.Stage
	Batch        int
	Rate         float64
}

func (n *network) steps() int {
	t := nn.Training{Stages: n.Stages}
	return t.Steps()
}

// trainingProducts counts the multiplications of training: a gradient takes twice as many as an answer.
func (n *network) trainingProducts(net *nn.Net) (sum float64) {
	for _, s := range n.Stages {
		sum += 3 * float64(n.Batch) * float64(s.Steps) * float64(net.At(s.Size, s.Size).Multiplications())
	}
	return sum
}

// products counts those of training and of reading the held-out pictures once.
func (n *network) products(heldOut int) (float64, error) {
	net, err := newNet(n.Layers, n.Classes, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return 0, err
	}
	return n.trainingProducts(net) + float64(heldOut)*float64(net.Multiplications()), nil
}

// ladder is the ladder of the settings, before anything is trained.
func (s *settings) ladder() *digits.Ladder {
	l := &digits.Ladder{Seed: s.Seed, HeldOut: s.HeldOut, Variants: s.Variants}
	for _, n := range s.Networks {
		l.Networks = append(l.Networks, digits.Network{Name: n.Name, Layers: n.Layers, Classes: n.Classes})
	}
	return l
}

// classifiers are the settings of the ladder of classifiers. Training begins with small pictures. They teach the shapes
// of digits at a fraction of the cost; without them training on larger ones makes no progress for a long time.
func classifiers(seed uint64) settings {
	const (
		coarse = "avg2 conv3x16 max2 conv3x32 max2 conv3x48"
		slim   = "conv3x16 max2 conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64"
		deep   = "conv3x16 max2 conv3x32 max2 conv3x64 conv3x64 max2 conv3x96 conv3x96"
	)
	stages := []nn.Stage{{Size: 32, Steps: 300}, {Size: 64, Steps: 400}, {Size: 96, Steps: 60}}
	s := settings{
		Seed: seed, HeldOut: digits.HeldOut{Seed: seed ^ seedHeldOut, N: 1500, Brief: 60},
		Variants: []digits.Variant{
			{Name: "tiny", Networks: []string{"coarse"}, Views: 1},
			{Name: "small", Networks: []string{"slim"}, Views: 1},
			{Name: "medium", Networks: []string{"deep-a"}, Views: 1},
			{Name: "large", Networks: []string{"deep-a", "deep-b"}, Views: 1},
			{Name: "xlarge", Networks: []string{"deep-a", "deep-b", "deep-c"}, Views: 2},
		},
	}
	for _, n := range [][2]string{
		{"coarse", coarse}, {"slim", slim}, {"deep-a", deep}, {"deep-b", deep}, {"deep-c", deep},
	} {
		s.Networks = append(s.Networks, network{n[0], n[1], 10, drawDigit, stages, 32, 16e-3})
	}
	return s
}

// sceneModels are the settings of the models for scenes: detectors, which find digits in a scene, and readers, which
// read one in a patch.
func sceneModels(seed uint64) settings {
	patches := func(steps int) []nn.Stage { return []nn.Stage{{Size: digits.Box, Steps: steps}} }
	return settings{
		Seed: seed, HeldOut: digits.HeldOut{Seed: seed ^ seedHeldOut, N: 300, Brief: 40},
		Networks: []network{
			{
				"coarse", "avg2 conv3x16 max2 conv3x32 max2 conv3x48", 2, drawPatch, []nn.Stage{
					{Size: digits.Box, Steps: 400}, {Size: 64, Steps: 200},
				}, 32, 16e-3,
			},
			{
				"fine", "conv3x16 max2 conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64", 2, drawPatch,
				[]nn.Stage{{Size: digits.Box, Steps: 500}, {Size: 64, Steps: 400}, {Size: 96, Steps: 60}}, 32, 16e-3,
			},
			{"quick", "conv3x16 max2 conv3x32 max2 conv3x48", 10, drawDigit, patches(600), 32, 16e-3},
			{
				"careful", "conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64", 10, drawDigit, patches(600), 32,
				16e-3,
			},
		},
		Variants: []digits.Variant{
			{Name: "coarse", Stage: digits.Detect, Networks: []string{"coarse"}},
			{Name: "fine", Stage: digits.Detect, Networks: []string{"fine"}},
			{Name: "quick", Stage: digits.Read, Networks: []string{"quick"}},
			{Name: "careful", Stage: digits.Read, Networks: []string{"careful"}},
		},
	}
}
