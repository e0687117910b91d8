package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// model is a module's profile, as a model of profiles says: a batch spends part of its time beside the device (reading,
// resizing, copying, the gaps of Figure 2b) and part of it on the device, which batches at once share. Times are in ms.
type model struct {
	name               string
	cpu                bool
	host, hostItem     float64 // beside the device: of a batch, and of each item of it
	device, deviceItem float64 // on it
	largest            int     // batch
	// above the batch the device's time is so many times as long (§3.2); a batch of 0 is never
	kernelBatch, kernelTime float64
	v100                    float64    // the machine types' ratio of throughputs (Table 2)
	balloon                 [2]float64 // by how much content stretches times: least and most (§2)
	load                    time.Duration
}

func models() (map[string]*model, error) {
	rows, err := data.Records("models.csv", "model", "kind", "host_ms", "host_item_ms", "device_ms", "device_item_ms",
		"largest", "kernel_batch", "kernel_factor", "v100", "balloon_least", "balloon_most", "load_s")
	if err != nil {
		return nil, err
	}
	out := make(map[string]*model)
	for n, r := range rows {
		v, err := reproduce.Numbers("models.csv", n, r[2:])
		if err != nil {
			return nil, err
		}
		out[r[0]] = &model{
			name: r[0], cpu: r[1] == "cpu", host: v[0], hostItem: v[1], device: v[2], deviceItem: v[3],
			largest:     int(v[4]),
			kernelBatch: v[5], kernelTime: v[6], v100: v[7], balloon: [2]float64{v[8], v[9]},
			load: time.Duration(v[10] * float64(time.Second)),
		}
	}
	return out, nil
}

// concurrencies of concurrency that are profiled. Figure 5 shows several without saying which.
var concurrencies = []int{1, 2, 3, 4, 6, 8}

const (
	// interferes is the level above which batches at once slow each other down besides sharing the device, each further
	// one by interference: throughput rises with concurrency up to a point and then drops (§3.2).
	interferes   = 4
	interference = 0.05
)

// latencyMS is how long a batch takes on a P100 while so many run, in ms: mean value analysis of a closed network (Reiser
// and Lavenberg, 1980) in which batches take turns at one station, the device, and need nobody while they are beside
// it. Throughput rises with concurrency up to what the device allows.
func (m *model) latencyMS(batch, concurrency int) float64 {
	b := float64(batch)
	host, device := m.host+b*m.hostItem, m.device+b*m.deviceItem
	if m.kernelBatch > 0 && b > m.kernelBatch {
		device *= m.kernelTime
	}
	device *= 1 + interference*float64(max(0, concurrency-interferes))
	queued, took := 0.0, 0.0 // batches at the device, and a batch's whole time, when so many run
	for n := 1; n <= concurrency; n++ {
		visit := device * (1 + queued)
		took = host + visit
		queued = float64(n) / took * visit
	}
	return took
}

// throughput is what a P100 carries in a configuration, in items/s.
func (m *model) throughput(batch, concurrency int) float64 {
	return 1000 * float64(batch*concurrency) / m.latencyMS(batch, concurrency)
}

// points are the profile on machine types that are so many times as fast as a P100, or a CPU worker. On a CPU an item
// runs alone (§3.2: what is profiled is the time of a single input).
func (m *model) points(v serving.VariantID, d serving.DeviceTypeID, faster float64) (out []serving.LatencyPoint) {
	for _, e := range concurrencies {
		if m.cpu && e > 1 {
			break
		}
		for b := 1; b <= m.largest; b *= 2 {
			t := millis(m.latencyMS(b, e) / faster)
			out = append(out, serving.LatencyPoint{
				Variant: v, DeviceType: d, Items: b, Concurrency: e, Samples: 1, Mean: t, P50: t, P90: t, P95: t,
				P99: t,
			})
		}
	}
	return out
}
