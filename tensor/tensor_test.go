package tensor

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		want  int64
		err   string
	}{
		{nil, 1, ""}, {[]int64{2, 3}, 6, ""}, {[]int64{0, 1 << 62}, 0, ""}, {[]int64{5, 0, -1}, 0, "negative"},
		{[]int64{16, 1152921504606846978}, 0, "exceed"}, {[]int64{1 << 32, 1 << 32}, 0, "exceed"},
		{[]int64{1001}, 0, "size of 1000"},
	} {
		got, err := Elements(c.shape, 1000)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v: %d, %v; want %d, %q", c.shape, got, err, c.want, c.err)
		}
	}
}

func TestNames(t *testing.T) {
	for d := Bool; d <= Bytes; d++ {
		if ParseDType(d.String()) != d {
			t.Errorf("%v", d)
		}
	}
	if ParseDType("INVALID") != Invalid || ParseDType("") != Invalid {
		t.Error("INVALID is no type")
	}
}

func TestRows(t *testing.T) {
	x := Tensor{Name: "x", DType: Int16, Shape: []int64{3, 2}, Data: []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}}
	if r, err := x.Rows(1, 3); err != nil || !bytes.Equal(r.Data, x.Data[4:]) || r.Shape[0] != 2 {
		t.Errorf("%+v %v", r, err)
	}
	var s []byte
	for _, e := range []string{"a", "bb", "", "dddd"} {
		s = AppendBytes(s, []byte(e))
	}
	y := Tensor{Name: "y", DType: Bytes, Shape: []int64{4}, Data: s}
	r, err := y.Rows(1, 3)
	if n, _ := CountBytes(r.Data); err != nil || n != 2 ||
		!bytes.Equal(r.Data, []byte("\x02\x00\x00\x00bb\x00\x00\x00\x00")) {
		t.Errorf("%q %v", r.Data, err)
	}
	if _, err := x.Rows(2, 4); err == nil {
		t.Error("rows that are not there were cut")
	}
}

// Whatever the bytes: no panic, and what is valid can be cut into rows that are valid and put together again.
func FuzzBytes(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(b)))()
		n, err := CountBytes(b)
		if err != nil {
			return
		}
		x := Tensor{Name: "x", DType: Bytes, Shape: []int64{int64(n)}, Data: b}
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		var again []byte
		for k := range int64(min(n, 64)) {
			r, err := x.Rows(k, k+1)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			again = append(again, r.Data...)
		}
		if n <= 64 && !bytes.Equal(again, b) {
			t.Fatalf("%q, want %q", again, b)
		}
	})
}

// A byte that is neither 0 nor 1 is no BOOL.
func TestBoolsAreZeroOrOne(t *testing.T) {
	good := Tensor{Name: "x", DType: Bool, Shape: []int64{3}, Data: []byte{0, 1, 1}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := Tensor{Name: "x", DType: Bool, Shape: []int64{3}, Data: []byte{0, 2, 1}}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "element 1 is the byte 2") {
		t.Errorf("%v", err)
	}
}
