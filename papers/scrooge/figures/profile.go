package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// model is the modelled profile of a module. A batch spends part of its time on the host (reading, resizing, copying,
// the gaps of Figure 2b) and part on the device, which concurrent batches share. Times are in ms.
type model struct {
	name               string
	cpu                bool
	host, hostItem     float64 // on the host: for a batch, and for each item of it
	device, deviceItem float64 // on the device, likewise
	largest            int     // largest batch
	// above the batch size kernelBatch the device's time is multiplied by kernelTime (§3.2); 0 means never
	kernelBatch, kernelTime float64
	v100                    float64    // throughput of a V100 over that of a P100 (Table 2)
	balloon                 [2]float64 // least and most ballooning factor (§2)
	load                    time.Duration
}

func models() (map[string]*model, error) {
	out := make(map[string]*model)
	return out, data.Read("models.csv", "model,kind,host_ms,host_item_ms,device_ms,device_item_ms,largest,"+
		"kernel_batch,kernel_factor,v100,balloon_least,balloon_most,load_s", 2, func(key []string, v []float64) error {
		out[key[0]] = &model{
			name: key[0], cpu: key[1] == "cpu", host: v[0], hostItem: v[1], device: v[2], deviceItem: v[3],
			largest: int(v[4]), kernelBatch: v[5], kernelTime: v[6], v100: v[7], balloon: [2]float64{v[8], v[9]},
			load: time.Duration(v[10] * float64(time.Second)),
		}
		return nil
	})
}

// concurrencies are the profiled ones. Figure 5 shows several without naming them.
var concurrencies = []int{1, 2, 3, 4, 6, 8}

const (
	// Above the concurrency interferes, each further batch slows the device down by interference, besides sharing it:
	// throughput rises with concurrency up to a point and then falls (§3.2).
	interferes   = 4
	interference = 0.05
)

// latencyMS returns how long a batch takes on a P100 while so many run, in ms. It is mean value analysis of a closed
// queueing network (Reiser and Lavenberg, 1980): batches queue at one station, the device, and wait for nothing on the
// host.
func (m *model) latencyMS(batch, concurrency int) float64 {
	b := float64(batch)
	host, device := m.host+b*m.hostItem, m.device+b*m.deviceItem
	if m.kernelBatch > 0 && b > m.kernelBatch {
		device *= m.kernelTime
	}
	device *= 1 + interference*float64(max(0, concurrency-interferes))
	queued, took := 0.0, 0.0 // with n batches: those at the device, and the time of one
	for n := 1; n <= concurrency; n++ {
		visit := device * (1 + queued)
		took = host + visit
		queued = float64(n) / took * visit
	}
	return took
}

// throughput returns the throughput of a P100 in a configuration, in items/s.
func (m *model) throughput(batch, concurrency int) float64 {
	return 1000 * float64(batch*concurrency) / m.latencyMS(batch, concurrency)
}

// points returns the profile on a machine type that is faster than a P100, or than a CPU worker, by the given factor.
// On a CPU an item runs alone (§3.2 profiles the time of a single input there).
func (m *model) points(v serving.VariantID, d serving.DeviceTypeID, faster float64) (out []serving.LatencyPoint) {
	for _, e := range concurrencies {
		if m.cpu && e > 1 {
			break
		}
		for b := 1; b <= m.largest; b *= 2 {
			t := millis(m.latencyMS(b, e) / faster)
			out = append(out, reproduce.Always(serving.LatencyPoint{
				Variant: v, DeviceType: d, Items: b, Concurrency: e, Samples: 1,
			}, t))
		}
	}
	return out
}
