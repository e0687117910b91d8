package onnxmodel

import (
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// maxLoad bounds the bytes that Load reads. No protobuf message can be longer.
const maxLoad = 2 << 30

// Load reads a whole model, weights included. Read is enough for inputs and outputs.
func Load(path string) (*pb.ModelProto, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	if !st.Mode().IsRegular() || st.Size() >= maxLoad {
		return nil, fmt.Errorf("load model %s: it is %d bytes long, want a file of less than %d", path, st.Size(),
			maxLoad)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	var m pb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("load model %s: %w", path, err)
	}
	if m.Graph == nil {
		return nil, fmt.Errorf("load model %s: not an ONNX model: it holds no graph", path)
	}
	return &m, nil
}
