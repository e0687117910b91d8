package onnxmodel

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// External data is found wherever a model may hide it, and only there.
func TestExternal(t *testing.T) {
	outside := &pb.TensorProto{
		Name: "w", DataLocation: pb.TensorProto_EXTERNAL,
		ExternalData: []*pb.StringStringEntryProto{{Key: "location", Value: "../../secret"}},
	}
	constant := func(x *pb.TensorProto) *pb.NodeProto {
		return &pb.NodeProto{OpType: "Constant", Attribute: []*pb.AttributeProto{{Name: "value", T: x}}}
	}
	plain := &pb.TensorProto{Name: "w", RawData: []byte{0x68, 0x6a, 0, 1}, Dims: []int64{4}}
	branch := func(x *pb.TensorProto) *pb.NodeProto {
		return &pb.NodeProto{
			OpType: "If", Attribute: []*pb.AttributeProto{
				{Name: "then_branch", G: &pb.GraphProto{Node: []*pb.NodeProto{constant(x)}}},
			},
		}
	}
	marshal := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wrapped := func(num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	// Messages of newer versions of the format: functions of a model, sparse initializers of a graph.
	for name, b := range map[string][]byte{
		"function": wrapped(25, wrapped(7, marshal(constant(outside)))),
		"sparse":   wrapped(7, wrapped(15, wrapped(1, marshal(outside)))),
	} {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := External(path); err != nil || !got {
			t.Errorf("%s: %v, %v, want true", name, got, err)
		}
	}
	for name, x := range map[string]struct {
		model *pb.ModelProto
		want  bool
	}{
		"none": {
			&pb.ModelProto{
				Graph: &pb.GraphProto{
					Initializer: []*pb.TensorProto{plain}, Node: []*pb.NodeProto{constant(plain), branch(plain)},
				},
			}, false,
		},
		"initializer": {&pb.ModelProto{Graph: &pb.GraphProto{Initializer: []*pb.TensorProto{plain, outside}}}, true},
		"constant": {
			&pb.ModelProto{Graph: &pb.GraphProto{Node: []*pb.NodeProto{constant(plain), constant(outside)}}}, true,
		},
		"branch": {&pb.ModelProto{Graph: &pb.GraphProto{Node: []*pb.NodeProto{branch(outside)}}}, true},
	} {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, marshal(x.model), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := External(path); err != nil || got != x.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, x.want)
		}
	}
}
