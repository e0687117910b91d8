package python

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/bounded"
)

// FuzzAnswer: no bytes of a worker, whose model may write to its socket, make the server panic, hang, or take much
// memory, and what is handed to the queries of the batch is valid.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"pid":1,"python":"3.11","numpy":"1.24"}`,
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,1]}],` +
			`"outputs":[{"name":"y","datatype":"BYTES","shape":[-1]}],"batched":true,"max_batch":8,` +
			`"streams":false,"each_query":false,"sample":true}`,
		`{"outputs":[{"name":"y","datatype":"FP32","shape":[2,1],"offset":64,"size":8}],"state":[72,4]}`,
		`{"outputs":[{"name":"y","datatype":"BYTES","shape":[2],"offset":0,"size":8}]}`,
		`{"need":100}`, `{"modules":["torch","torch.nn"]}`,
		`{"error":{"kind":"exception","id":"0123456789ab","text":"ValueError"}}`,
	} {
		f.Add([]byte(text))
	}
	memory, err := newMemory(4096)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(memory.close)
	x := &process{memory: memory}
	m := &Model{Name: "m"}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		wire := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
		var out answer
		if receive(bytes.NewReader(wire), &out) != nil {
			return
		}
		_, _ = out.about(m)
		if out.failure(m, "it") != nil {
			return
		}
		packagesOf(out.Modules)
		outputs, err := x.tensors(&out, nil)
		if err != nil {
			return
		}
		if out.State != nil {
			memory.part(out.State[0], out.State[1])
		}
		g := group{portions: []*dataplane.Portion{{Items: 1}, {Items: 1}}, rows: 2}
		if split(g, outputs) != nil {
			return
		}
		for _, p := range g.portions {
			for _, o := range p.Outputs {
				if err := o.Validate(); err != nil {
					t.Errorf("a query gets a tensor that is not valid: %v", err)
				}
			}
		}
	})
}
