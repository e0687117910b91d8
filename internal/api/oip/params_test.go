package oip

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// The sequence extension over both protocols: names and numbers, 0 and "" for none.
func TestSequences(t *testing.T) {
	for _, c := range []struct {
		json string
		grpc map[string]*pb.InferParameter
		want Params
		err  string
	}{
		{`"sequence_id":7`, map[string]*pb.InferParameter{"sequence_id": Int(7)}, Params{Sequence: "7"}, ""},
		{`"sequence_id":18446744073709551615,"sequence_end":true`,
			map[string]*pb.InferParameter{"sequence_end": Bool(true),
				"sequence_id": {ParameterChoice: &pb.InferParameter_Uint64Param{Uint64Param: 1<<64 - 1}}}, Params{
				Sequence: "18446744073709551615", SequenceEnd: true,
			}, ""},
		{`"sequence_id":"camera 1","sequence_start":true`, map[string]*pb.InferParameter{
			"sequence_id": String("camera 1"), "sequence_start": Bool(true),
		},
			Params{Sequence: "camera 1", SequenceStart: true}, ""},
		{
			`"sequence_id":0,"sequence_start":false`, map[string]*pb.InferParameter{
				"sequence_id": Int(0), "sequence_start": String("false"),
			}, Params{}, "",
		},
		{`"sequence_id":""`, map[string]*pb.InferParameter{"sequence_id": String("")}, Params{}, ""},
		{
			`"sequence_id":7,"sequence_rate":12.5`, map[string]*pb.InferParameter{"sequence_id": Int(7),
				"sequence_rate": Double(12.5)}, Params{Sequence: "7", SequenceRate: 12.5}, "",
		},
		{
			`"sequence_rate":2`, map[string]*pb.InferParameter{"sequence_rate": Int(2)}, Params{},
			"parameters.sequence_id: is missing",
		},
		{
			`"sequence_id":7,"sequence_rate":-1`, map[string]*pb.InferParameter{"sequence_id": Int(7),
				"sequence_rate": Int(-1)}, Params{}, "parameters.sequence_rate: is -1",
		},
		{
			`"sequence_id":1.5`, map[string]*pb.InferParameter{"sequence_id": Double(1.5)}, Params{},
			"parameters.sequence_id: is 1.5",
		},
		{
			`"sequence_id":"` + strings.Repeat("x", 257) + `"`,
			map[string]*pb.InferParameter{"sequence_id": String(strings.Repeat("x", 257))}, Params{}, "at most 256",
		},
		{
			`"sequence_start":true`, map[string]*pb.InferParameter{"sequence_start": Bool(true)}, Params{},
			"parameters.sequence_id: is missing",
		},
		{
			`"sequence_end":1,"sequence_id":1`, map[string]*pb.InferParameter{"sequence_end": Int(1),
				"sequence_id": Int(1)}, Params{}, "want true or false",
		},
		{
			`"stage_timings":true`, map[string]*pb.InferParameter{"stage_timings": Bool(true)},
			Params{StageTimings: true}, "",
		},
	} {
		check := func(how string, p Params, err error) {
			t.Helper()
			switch {
			case c.err == "" && (err != nil || p != c.want):
				t.Errorf("%s: %s: %+v, %v, want %+v", how, c.json, p, err, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%s: %s: %v, want an error that says %q", how, c.json, err, c.err)
			}
		}
		r, err := DecodeREST([]byte(`{"parameters":{`+c.json+
			`},"inputs":[{"name":"x","datatype":"INT8","shape":[1],"data":[1]}]}`), NoBinary, Bounds{}, nil, nil)
		if r == nil {
			r = &RESTRequest{}
		}
		check("HTTP", r.Params, err)
		p, err := DecodeParams(c.grpc)
		check("gRPC", p, err)
		if c.err != "" {
			continue
		}
		body, n, err := EncodeRESTRequest(&RESTRequest{Inputs: r.Inputs, Params: c.want}, false)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = DecodeREST(body, n, Bounds{}, nil, nil); err == nil {
			check("HTTP, written", r.Params, err)
		}
		if strings.Contains(string(body), `"sequence_id":`) != (c.want.Sequence != "") ||
			strings.Contains(string(body), `"sequence_id":"`) != strings.Contains(c.want.Sequence, "camera") {
			t.Errorf("%+v is written as %s", c.want, body)
		}
		p, err = DecodeParams(map[string]*pb.InferParameter{"sequence_id": SequenceID(c.want.Sequence)})
		if err != nil || p.Sequence != c.want.Sequence {
			t.Errorf("gRPC, written: %+v, %v, want %q", p, err, c.want.Sequence)
		}
	}
}
