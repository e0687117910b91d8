package server

import (
	"bytes"
	"testing"
	"unsafe"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

func pieces(b []byte) (out mem.BufferSlice) {
	const frame = 16 << 10
	for ; len(b) > frame; b = b[frame:] {
		out = append(out, mem.SliceBuffer(b[:frame]))
	}
	return append(out, mem.SliceBuffer(b))
}

func largeRequest(n int) *pb.ModelInferRequest {
	data := bytes.Repeat([]byte{1, 2, 3, 4}, n/4)
	return oip.EncodeRequest("m", "", "id", []tensor.Tensor{
		{Name: "x", DType: tensor.FP32, Shape: []int64{1, int64(n / 4)}, Data: data},
		{Name: "y", DType: tensor.Uint8, Shape: []int64{1, 3}, Data: []byte{1, 2, 3}},
	}, map[string]*pb.InferParameter{"priority": oip.Int(2)})
}

// TestLargeMessagesKeepTheirTensorsInPlace checks that a message means what it meant, and that its tensors are those of
// the one piece of memory that its frames are gathered in: that is the only copy.
func TestLargeMessagesKeepTheirTensorsInPlace(t *testing.T) {
	codec := newBoundedCodec(oip.Bounds{}.WithDefaults(), memory.New(0, nil))
	for _, n := range []int{64, largeMessage - 64, largeMessage, 1 << 20} {
		want := largeRequest(n)
		wire, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		in := &checkedRequest{ModelInferRequest: new(pb.ModelInferRequest)}
		if err := codec.Unmarshal(pieces(wire), in); err != nil || in.refused != nil {
			t.Fatal(err, in.refused)
		}
		if !proto.Equal(in.ModelInferRequest, want) {
			t.Errorf("%d bytes: the message has changed", n)
		}
		if n < largeMessage {
			continue
		}
		x, y := in.RawInputContents[0], in.RawInputContents[1]
		if gap := uintptr(unsafe.Pointer(&y[0])) - uintptr(unsafe.Pointer(&x[0])); gap != uintptr(n)+2 {
			t.Errorf("%d bytes: the tensors are %d apart: they were copied", n, gap) // a tag and a length lie between
		}
		if at := uintptr(unsafe.Pointer(&x[0])); at%memory.Alignment != 0 {
			t.Errorf("%d bytes: the first tensor is at %x", n, at)
		}
	}
}

func TestLargeAnswersAreSentFromWhereTheyAre(t *testing.T) {
	codec := newBoundedCodec(oip.Bounds{}.WithDefaults(), memory.New(0, nil))
	for _, n := range []int{0, 64, largeMessage, 1 << 20} {
		want := &pb.ModelInferResponse{ModelName: "m", Id: "7", RawOutputContents: [][]byte{
			bytes.Repeat([]byte{5}, n), {1, 2}, {}}}
		got, err := codec.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		back := new(pb.ModelInferResponse)
		if err := proto.Unmarshal(got.Materialize(), back); err != nil || !proto.Equal(back, want) {
			t.Errorf("%d bytes: reads as %v, %v", n, back, err)
		}
		inPlace := false
		for _, b := range got {
			d := b.ReadOnlyData()
			inPlace = inPlace || n > 0 && len(d) == n && &d[0] == &want.RawOutputContents[0][0]
		}
		if inPlace != (n >= largeMessage) {
			t.Errorf("%d bytes: sent from where it is: %v", n, inPlace)
		}
	}
}

// FuzzSplitRaw compares the decoder of large messages with that of protocol buffers.
func FuzzSplitRaw(f *testing.F) {
	wire, err := proto.Marshal(largeRequest(64))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wire)
	f.Fuzz(func(t *testing.T, b []byte) {
		rawOffset(b)
		want, got := new(pb.ModelInferRequest), new(pb.ModelInferRequest)
		rest, raw, ok := splitRaw(b)
		if !ok {
			return
		}
		wrong, err := proto.Unmarshal(b, want), proto.Unmarshal(rest, got)
		got.RawInputContents = raw
		if (wrong == nil) != (err == nil) || err == nil && !proto.Equal(got, want) {
			t.Errorf("%x: reads as %v, %v, want %v, %v", b, got, err, want, wrong)
		}
	})
}
