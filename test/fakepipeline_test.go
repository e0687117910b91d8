package test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// A graph on fake workers under load, over gRPC: branches, a join, a stage that is sent 3 items for each and one that
// is sent none. Every query is answered, and tells of the stages that it went through.
func TestPipelineOfFakes(t *testing.T) {
	file := write(t, t.TempDir(), "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - name: scenes
    slo: {latency: 2s}
    inputs: [{name: image, datatype: FP32, shape: [-1, 4]}]
    stages:
      - {name: find, variants: [{name: find, max_batch: 8}], next: [{to: left, rows: boxes, fan_out: 3}, {to: right,
          rows: boxes, fan_out: 3}, {to: never, rows: none, fan_out: 0}]}
      - {name: left, variants: [{name: left, max_batch: 8}], next: [{to: both}]}
      - {name: right, variants: [{name: right, max_batch: 8}], next: [{to: both}]}
      - {name: both, variants: [{name: both, max_batch: 8}]}
      - {name: never, variants: [{name: never, max_batch: 8}]}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "off"}
`)
	server := serve(t, "-f", file)
	client, err := loadgen.DialGRPC(server.grpc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	specs, err := client.Inputs(t.Context(), "scenes")
	if err != nil || len(specs) != 1 || specs[0].Name != "image" || specs[0].DType != tensor.FP32 {
		t.Fatalf("%v, %v", specs, err)
	}
	samples, err := loadgen.Synthetic(specs, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	var load []workload.Arrival
	const n = 100
	for k := range n {
		load = append(load, workload.Arrival{
			At: serving.Time(k/5) * serving.Time(20*time.Millisecond), Items: 1, Variant: serving.None, Sample: -1,
			Stream: uint64(k % 3),
		})
	}
	resp, err := http.Get(server.url() + "/v2/models/scenes")
	if err != nil {
		t.Fatal(err)
	}
	meta, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(meta), `"platform":"ensemble"`) {
		t.Errorf("metadata: %s", meta)
	}
	until(t, func() bool {
		_, err := client.Infer(t.Context(), &loadgen.Request{Model: "scenes", Inputs: samples.Tensors(0, 1)})
		return err == nil
	})
	r, err := loadgen.Run(t.Context(), client, []loadgen.App{
		{Name: "scenes", SLO: serving.SLO{Latency: 2 * time.Second, Percentile: 99}, Samples: samples},
	}, workload.FromSlice(load),
		loadgen.Options{StageTimings: true})
	if err != nil {
		t.Fatal(err)
	}
	if s := &r.Report.Overall; s.Served != n {
		t.Errorf("%d of %d queries served: %+v", s.Served, n, r.Errors)
	}
	got := map[string]float64{}
	for _, s := range r.Stages {
		if s.Served != n {
			t.Errorf("%d queries went through stage %q", s.Served, s.Stage)
		}
		got[s.Stage] = s.Items
	}
	if len(got) != 4 || got["find"] != 1 || got["left"] != 3 || got["right"] != 3 || got["both"] != 3 {
		t.Errorf("items by stage: %v", got)
	}
}
