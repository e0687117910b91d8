package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
)

func exportCommand() command {
	return command{
		name: "export", summary: "write a sluice.yaml as Kubernetes resources",
		usage: "kubernetes -f sluice.yaml [-o DIR]",
		about: `
kubernetes writes a Fleet, MachineTypes, InferenceApps and Profiles (docs/kubernetes.md). Settings without a
counterpart are listed, and the exit status is then 5. Without -o it prints the resources for kubectl apply -f -.`,
		examples: "sluice export kubernetes -f sluice.yaml | kubectl apply -f -\n" +
			"sluice export kubernetes -f sluice.yaml --models pvc://models -o manifests",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			var how resources.Exporting
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			out := fs.String("o", "", "`folder` to write fleet.yaml, machinetypes.yaml, inferenceapps.yaml and "+
				"profiles.yaml into; files that are there stay")
			fs.StringVar(&how.Models, "models", "", "where workers find the model repository: pvc://CLAIM/PATH, "+
				"https://HOST/PATH, s3://BUCKET/PATH or file:///PATH; the repository's own `place` if empty")
			fs.StringVar(&how.Fleet, "fleet", "default", "`name` of the fleet")
			fs.StringVar(&how.Namespace, "namespace", "", "`namespace` of all resources; empty leaves it to kubectl")
			fs.StringVar(&how.Resource, "accelerator", "nvidia.com/gpu", "extended `resource` that accelerators are")
			fs.IntVar(&how.Dispatchers, "dispatchers", 2, "`number` of front ends")
			return func(e *Env, args []string) error {
				if len(args) != 1 || args[0] != "kubernetes" {
					return fault.Errorf(fault.Usage, "say what to write: kubernetes")
				}
				return exportKubernetes(e, *file, *out, how)
			}
		},
	}
}

func exportKubernetes(e *Env, file, out string, how resources.Exporting) error {
	o, err := open(e, file)
	if err != nil {
		return err
	}
	list, err := resources.Export(o, how)
	if err != nil {
		return err
	}
	if err := writeResources(e, list, out); err != nil {
		return err
	}
	return left(e, list)
}

// left prints what was assumed and what is lost. The error says that something is.
func left(e *Env, list *resources.List) error {
	for _, n := range list.Notes {
		fmt.Fprintf(e.Stderr, "note: %s\n", n)
	}
	for _, l := range list.Left {
		fmt.Fprintf(e.Stderr, "left out: %s\n", l)
	}
	if len(list.Left) > 0 {
		return fault.Errorf(fault.Short, "%d settings are left out, see above", len(list.Left))
	}
	return nil
}

// writeResources prints resources, or writes a file for each kind into a folder.
func writeResources(e *Env, list *resources.List, folder string) error {
	if folder == "" {
		return list.Write(e.Stdout, "")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, kind := range list.Kinds() {
		name := strings.ToLower(kind) + "s.yaml"
		if kind == "Fleet" {
			name = "fleet.yaml"
		}
		path := filepath.Join(folder, name)
		var text bytes.Buffer
		if err := list.Write(&text, kind); err != nil {
			return err
		}
		if err := writeNew(path, text.Bytes()); err != nil {
			return err
		}
		fmt.Fprintf(e.Stdout, "written to %s\n", path)
	}
	return nil
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.Errorf(fault.Config, "%s is there already: name another place", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
