package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// replaceNops writes models in place of those that Triton's scripts describe for its identity backend, as steps of
// ensembles: folders such as nop_TYPE_FP32_-1,-1, which has two inputs of two variable dimensions.
func replaceNops(root string) error {
	folders, err := filepath.Glob(filepath.Join(root, "nop_TYPE_*"))
	if err != nil {
		return err
	}
	var list []standIn
	for _, f := range folders {
		name := filepath.Base(f)
		kind, shape, _ := strings.Cut(strings.TrimPrefix(name, "nop_TYPE_"), "_")
		var dims []int64
		for part := range strings.SplitSeq(shape, ",") {
			d, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			dims = append(dims, d)
		}
		d, ok := onnxmodel.ParseDType(strings.Replace(kind, "STRING", "BYTES", 1))
		if !ok {
			return fmt.Errorf("%s: type %q is not known", name, kind)
		}
		config, err := os.ReadFile(filepath.Join(f, "config.pbtxt"))
		if err != nil {
			return err
		}
		inputs := 1
		if strings.Contains(string(config), "INPUT1") {
			inputs = 2
		}
		list = append(list, same(name, kind, d, 1024, inputs, dims...))
	}
	return write(root, list)
}
