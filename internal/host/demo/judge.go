package demo

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/tensor"
)

// Tally counts the digits in the scenes that have been answered.
type Tally struct {
	Present int // in the scenes
	Found   int // by the detector
	Correct int // found at their place and read correctly
}

// Precision is the share of the digits found that are correct.
func (t Tally) Precision() float64 { return share(t.Correct, t.Found) }

// Recall is the share of the digits in the scenes that were found and read correctly.
func (t Tally) Recall() float64 { return share(t.Correct, t.Present) }

func share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

// reading counts digits while answers come in.
type reading struct {
	mu    sync.Mutex
	tally Tally
}

// Tally returns the counts so far.
func (r *reading) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

func (r *reading) add(there, found, right int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Present += there
	r.tally.Found += found
	r.tally.Correct += right
}

// judge holds an answer against the scene. Items are the digits that are there and those that were found, so that the
// measured accuracy is the harmonic mean of precision and recall, as the accuracy of a detector in its profile is. A
// digit that is found where it is and read rightly is right in both. The whole answer is right when all digits are, and
// nothing was found besides.
func (s *Scenes) judge(outputs []tensor.Tensor, sample int) loadgen.Judgement {
	centres, labels := readAnswer(outputs)
	scene := &s.scenes[sample]
	right := 0
	for i, of := range scene.Match(centres) {
		if of >= 0 && i < len(labels) && labels[i] == scene.Digits[of].Label {
			right++
		}
	}
	s.add(len(scene.Digits), len(centres), right)
	return loadgen.Judgement{
		Right: 2 * right, Items: len(scene.Digits) + len(centres),
		Whole: right == len(scene.Digits) && right == len(centres),
	}
}

// readAnswer returns the centres of boxes, in pixels, and the labels of an answer.
func readAnswer(outputs []tensor.Tensor) (centres [][2]float32, labels []int64) {
	for _, o := range outputs {
		switch {
		case o.Name == "where" && o.DType == tensor.FP32:
			for b := o.Data; len(b) >= 16; b = b[16:] {
				at := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
				centres = append(centres, [2]float32{(at(0) + at(2)) / 2, (at(1) + at(3)) / 2})
			}
		case o.Name == "label" && o.DType == tensor.Int64:
			for b := o.Data; len(b) >= 8; b = b[8:] {
				labels = append(labels, int64(binary.LittleEndian.Uint64(b)))
			}
		}
	}
	return centres, labels
}
