package training

import (
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/digits"
)

// BenchmarkLadder measures each classifier that the program carries in ONNX Runtime on one thread, at batch sizes 1 to
// 16.
func BenchmarkLadder(b *testing.B) {
	startRuntime(b)
	l, err := digits.Trained(digits.Pictures)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := l.Write(dir); err != nil {
		b.Fatal(err)
	}
	images, _ := digits.Set(1, 16)
	for _, v := range l.Variants {
		s := session(b, digits.Model(dir, v.Name), "image", "logits", "label")
		for _, n := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprintf("%s/batch=%d", v.Name, n), func(b *testing.B) {
				classified(b, s, images[:n*digits.Pixels], digits.Size)
				for b.Loop() {
					classified(b, s, images[:n*digits.Pixels], digits.Size)
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "images/s")
				b.ReportMetric(v.Accuracy*100, "%right")
			})
		}
	}
}
