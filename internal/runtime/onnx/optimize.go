//go:build cgo

package onnx

import (
	"fmt"

	ort "github.com/yalue/onnxruntime_go"
)

// Optimize writes the graph that a model's sessions run to the file to. For this machine, the runtime fuses operators,
// folds constants and changes the memory layout of channels. The file is valid on this machine only, with Model.AsIs.
func (b *Backend) Optimize(model, to string) error {
	o, err := b.options(1)
	if err != nil {
		return err
	}
	defer func() { _ = o.Destroy() }()
	if err := o.SetOptimizedModelFilePath(to); err != nil {
		return fmt.Errorf("onnx: optimize %s: %w", model, err)
	}
	in, out, err := ort.GetInputOutputInfo(model)
	if err != nil {
		return fmt.Errorf("onnx: optimize %s: %w", model, err)
	}
	s, err := ort.NewDynamicAdvancedSession(model, infoNames(in), infoNames(out), o)
	if err != nil {
		return fmt.Errorf("onnx: optimize %s: %w", model, err)
	}
	return s.Destroy()
}

func infoNames(infos []ort.InputOutputInfo) []string {
	out := make([]string, len(infos))
	for i := range infos {
		out[i] = infos[i].Name
	}
	return out
}
