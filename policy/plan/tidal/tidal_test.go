package tidal

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
	"time"
)

func ramsisModels(t testing.TB) []Model {
	f, err := os.Open("/work/shared/data/ramsis/raw/artifact_latency_p95_us.csv")
	if err != nil {
		t.Skip(err)
	}
	rows, _ := csv.NewReader(f).ReadAll()
	var out []Model
	for i, n := range []string{"shufflenet_v2_x0_5", "mobilenet_v3_large", "efficientnet_b0", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4", "efficientnet_v2_s"} {
		m := Model{Accuracy: []float64{57.972, 73.004, 77.692, 80.608, 82.008, 83.384, 84.228}[i] / 100}
		for _, r := range rows {
			if r[0] == "image" && r[1] == n {
				us, _ := strconv.ParseFloat(r[3], 64)
				m.Latency = append(m.Latency, time.Duration(us*1000))
			}
		}
		out = append(out, m)
	}
	return out
}

func TestX(t *testing.T) {
	m := ramsisModels(t)
	for _, k := range []int{60, 20} {
		for r := 3500.; r <= 3800; r += 50 {
			p := &Pool{Rate: r * float64(k) / 60, Workers: k, SLO: 150 * time.Millisecond, Models: m, Late: 0.1}
			t0 := time.Now()
			x, ok := p.Price()
			if ok {
				t.Logf("%d %.0f: %v rest %v late %v n %d %+v", k, r, time.Since(t0), x.Rest, x.Late, len(x.Value), x.Promise)
			} else {
				t.Logf("%d %.0f: %v none", k, r, time.Since(t0))
			}
		}
	}
}
