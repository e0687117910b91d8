package onnxmodel

import "fmt"

// Check reports the first error that would make the graph unreadable: a value that is used before it is made, made
// twice or never made, a constant whose bytes do not fill its shape, a missing name or output. It does not check
// operators.
func (g *Graph) Check() error {
	if g.g.Name == "" {
		return fmt.Errorf("onnx graph: the name is empty: give NewGraph one")
	}
	made := map[string]bool{}
	define := func(what, name string) error {
		if name == "" {
			return fmt.Errorf("onnx graph %q: %s has an empty name", g.g.Name, what)
		}
		if made[name] {
			return fmt.Errorf("onnx graph %q: %s %q: the name is already taken", g.g.Name, what, name)
		}
		made[name] = true
		return nil
	}
	for _, in := range g.g.Input {
		if err := define("input", in.Name); err != nil {
			return err
		}
	}
	for _, t := range g.g.Initializer {
		if err := define("initializer", t.Name); err != nil {
			return err
		}
		if err := checkConstant(DType(t.DataType), t.Dims, len(t.RawData)); err != nil {
			return fmt.Errorf("onnx graph %q: initializer %q: %w", g.g.Name, t.Name, err)
		}
	}
	for _, n := range g.g.Node {
		for _, in := range n.Input {
			if in != "" && !made[in] {
				return fmt.Errorf("onnx graph %q: node %s: input %q is not made before it", g.g.Name, n.Name, in)
			}
		}
		for _, out := range n.Output {
			if err := define("output of node "+n.Name, out); err != nil {
				return err
			}
		}
	}
	if len(g.g.Output) == 0 {
		return fmt.Errorf("onnx graph %q: no outputs: call Output", g.g.Name)
	}
	listed := map[string]bool{}
	for _, out := range g.g.Output {
		if !made[out.Name] {
			return fmt.Errorf("onnx graph %q: output %q is made by no node", g.g.Name, out.Name)
		}
		if listed[out.Name] {
			return fmt.Errorf("onnx graph %q: output %q is declared twice", g.g.Name, out.Name)
		}
		listed[out.Name] = true
	}
	return nil
}

func checkConstant(d DType, dims []int64, raw int) error {
	if d.Size() == 0 {
		return fmt.Errorf("element type %s cannot be given as raw bytes", d)
	}
	want := int64(d.Size())
	for _, n := range dims {
		if n < 0 || (n > 0 && want > (1<<40)/n) {
			return fmt.Errorf("shape %v is negative or too large", dims)
		}
		want *= n
	}
	if want != int64(raw) {
		return fmt.Errorf("shape %v of %s needs %d bytes, got %d", dims, d, want, raw)
	}
	return nil
}
