package oip

import (
	"strconv"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// A byte order mark before JSON is passed over (RFC 8259, section 8.1), with binary tensors behind the JSON, too. The
// same bytes in a raw request are data.
func TestByteOrderMarks(t *testing.T) {
	const mark, x = "\ufeff", `{"name":"x","datatype":"UINT8","shape":[1,3]`
	raw := func() (tensor.Spec, bool, error) {
		return tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: []int64{-1}}, false, nil
	}
	head := mark + `{"inputs":[` + x + `,"parameters":{"binary_data_size":3}}]}`
	for _, c := range []struct {
		body   string
		header int
		want   string
	}{
		{mark + `{"inputs":[` + x + `,"data":[1,2,3]}]}`, NoBinary, "\x01\x02\x03"},
		{mark + `{"more":0,"inputs":[` + x + `,"data":[1,2,3]}]}`, NoBinary, "\x01\x02\x03"}, // by encoding/json
		{head + "\x01\x02\x03", len(head), "\x01\x02\x03"},
		{mark, 0, mark},
	} {
		r, err := DecodeREST([]byte(c.body), c.header, Bounds{}, raw, nil)
		if err != nil || len(r.Inputs) != 1 || string(r.Inputs[0].Data) != c.want {
			t.Errorf("%q: %+v, %v", c.body, r, err)
		}
	}
	body, err := GenerateBody([]byte(mark+`{"x":[1,2,3]}`),
		[]tensor.Spec{{Name: "x", DType: tensor.Uint8, Shape: []int64{3}}}, false, Bounds{})
	if err != nil {
		t.Error(strconv.Quote(string(body)), err)
	}
}
