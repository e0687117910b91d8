package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/zoo"
)

// example is something small to serve: a model, or a repository of models.
type example struct {
	name, summary string
	files         func() map[string]*onnxmodel.Graph // by their path below the example; a model is its own file, ""
}

// adder is the model of the README.
func adder() *onnxmodel.Graph { return onnxmodel.Add(onnxmodel.Float32, onnxmodel.Symbolic, 3) }

func examples() []example {
	alone := func(build func() *onnxmodel.Graph) func() map[string]*onnxmodel.Graph {
		return func() map[string]*onnxmodel.Graph { return map[string]*onnxmodel.Graph{"": build()} }
	}
	networks := zoo.Networks()
	list := []example{
		{"adder.onnx", "adds two tensors, a and b, of three numbers an item", alone(adder)},
		{"models", "a repository of models, adder and mobilenet", func() map[string]*onnxmodel.Graph {
			at := slices.IndexFunc(networks, func(n zoo.Network) bool { return n.Name == "mobilenet" })
			return map[string]*onnxmodel.Graph{
				filepath.Join("adder", "1", "model.onnx"):     adder(),
				filepath.Join("mobilenet", "1", "model.onnx"): networks[at].Build(),
			}
		}},
	}
	for _, n := range networks {
		list = append(list, example{n.Name + ".onnx", n.Doc + " (random weights)", alone(n.Build)})
	}
	return list
}

func exampleCommand() command {
	return command{
		name: "example", summary: "write a small model to begin with", usage: "[NAME [TO]] [--force]",
		about: `
Writes a model, or a repository of models, into the current folder or to the path TO. Without NAME it lists what
there is. The same NAME gives the same bytes. The weights of networks are random: they take the time of their kind,
and what they answer has no meaning.`,
		examples: "sluice example\nsluice example adder.onnx && sluice serve adder.onnx\n" +
			"sluice example models && sluice config init models",
		prepare: func(flags *flag.FlagSet) func(*Env, []string) error {
			force := flags.Bool("force", false, "replace files that are there")
			return func(e *Env, args []string) error {
				list := examples()
				if len(args) == 0 {
					return listExamples(e, list)
				}
				at := slices.IndexFunc(list, func(x example) bool { return x.name == args[0] })
				if at < 0 || len(args) > 2 {
					return fault.Errorf(fault.Usage, "%q is no NAME and TO: 'sluice example' lists what there is", args)
				}
				to := list[at].name
				if len(args) == 2 {
					to = args[1]
				}
				return list[at].write(e, to, *force)
			}
		},
	}
}

func listExamples(e *Env, list []example) error {
	rows := [][]string{{"name", "what it is"}}
	for _, x := range list {
		rows = append(rows, []string{x.name, x.summary})
	}
	return columns(e.Stdout, "ll", rows)
}

// write writes the files of an example. It writes none where one of them is there already, unless force is set.
func (x *example) write(e *Env, to string, force bool) error {
	files := x.files()
	paths := slices.Sorted(maps.Keys(files))
	for _, p := range paths {
		path := filepath.Join(to, p)
		if _, err := os.Lstat(path); err == nil && !force {
			return fault.Errorf(fault.Usage, "%s is there already: name another path, or replace it with --force", path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, p := range paths {
		path := filepath.Join(to, p)
		if err := files[p].Write(path); err != nil {
			return err
		}
		fmt.Fprintln(e.Stdout, path)
	}
	return nil
}
