package resources_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/resources"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// What cannot be a resource of a fleet is refused, with the field.
func TestFunctionsThatNoFleetTakes(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.onnx")
	g := onnxmodel.NewGraph("whole").Input("x", onnxmodel.Float32, 2, 3).Node("Identity", []string{"x"}, []string{"y"}).
		Output("y", onnxmodel.Float32, 2, 3)
	if err := g.Write(whole); err != nil {
		t.Fatal(err)
	}
	const uri = "pvc://models/x.onnx"
	for _, x := range []struct {
		fn        config.Function
		uri, want string
	}{
		{config.Function{Name: "f", Model: whole}, "ftp://x", "pvc://CLAIM"},
		{config.Function{Name: "f", Model: "x.py"}, uri, "file of Python"},
		{config.Function{Name: "F_1", Model: whole}, uri, `"F_1" cannot be a resource`},
		{config.Function{Name: "f", Model: whole}, uri, "no batch"},
		{config.Function{Name: "f", Model: filepath.Join(dir, "none.onnx")}, uri, "no such file"},
	} {
		if _, err := resources.Function(&x.fn, "default", "", x.uri); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.fn, err, x.want)
		}
	}
}
