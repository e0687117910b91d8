package digits

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// BenchmarkLadder measures each variant of the full ladder in ONNX Runtime on one thread, at batch sizes 1 to 16. The
// ladder is built in the folder that SLUICE_DEMO_MODELS names, or taken from there; without it the benchmark is
// skipped.
func BenchmarkLadder(b *testing.B) {
	dir := os.Getenv("SLUICE_DEMO_MODELS")
	if dir == "" {
		b.Skip("SLUICE_DEMO_MODELS names no folder for the models: building them takes a minute or two")
	}
	startRuntime(b)
	began, last := time.Now(), ""
	l, err := Build(context.Background(), dir, 1, func(stage string, _, _ float64) {
		if stage != last {
			b.Logf("%6.1f s %s", time.Since(began).Seconds(), stage)
			last = stage
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	images, _ := Set(1, 16)
	for _, v := range l.Variants {
		s := session(b, Model(dir, v.Name), "image", "logits", "label")
		for _, n := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprintf("%s/batch=%d", v.Name, n), func(b *testing.B) {
				run(b, s, images[:n*Pixels])
				for b.Loop() {
					run(b, s, images[:n*Pixels])
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "images/s")
				b.ReportMetric(v.Accuracy*100, "%right")
				b.ReportMetric(float64(v.Bytes), "bytes")
			})
		}
	}
}
