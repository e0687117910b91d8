package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sluice-serving/sluice/docs"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

func configCommand() command {
	return command{
		name: "config", summary: "check a sluice.yaml, or write one from a model repository",
		usage: "check [--production] FILE | init REPOSITORY | objectives FILE | template | schema [SCHEMA]",
		about: `
check reads a file, resolves its models, reads its profiles, and prints every problem with its line and field. With
--production it lists what is open to strangers, with the lines that close it, and fails while there is anything.
init prints a commented file for a model repository laid out as MODEL/VERSION/model.onnx. It runs each model for a
second or so, to propose objectives; what cannot be served is named and left out.
objectives prints a file with the proposed objectives in it (slo.proposed) as a running server has corrected them;
--server is its admin address.
template prints a file with every setting and its default.
schema prints the JSON Schema of sluice.yaml, or of "workload" or "function" files, for editors: init names
sluice.schema.json in the file that it prints where there is one in the current folder.`,
		examples: "sluice config init models > sluice.yaml\nsluice config check sluice.yaml\n" +
			"sluice config check --production sluice.yaml\nsluice config objectives sluice.yaml > corrected.yaml\n" +
			"sluice config template\n" +
			"sluice config schema > sluice.schema.json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asIs := fs.Bool("no-measure", false, "with init, do not run the models to propose objectives")
			asJSON := fs.Bool("json", false, "with check, print the resolved tables as JSON")
			server := fs.String("server", config.DefaultAdmin, "with objectives, admin `address` of the server")
			production := fs.Bool("production", false, "with check, list what is open to strangers")
			return func(e *Env, args []string) error {
				switch {
				case len(args) == 2 && args[0] == "check" && *production:
					return checkProduction(e, args[1])
				case len(args) == 2 && args[0] == "check":
					return checkConfig(e, args[1], *asJSON)
				case len(args) == 2 && args[0] == "init":
					return initConfig(e, args[1], !*asIs)
				case len(args) == 2 && args[0] == "objectives":
					return writeObjectives(e, args[1], *server)
				case len(args) == 1 && args[0] == "template":
					_, err := e.Stdout.Write(config.Template())
					return err
				case len(args) > 0 && len(args) < 3 && args[0] == "schema":
					return printSchema(e, append(args, docs.Schemas()[0])[1])
				}
				return fault.Errorf(fault.Usage,
					"say what to do: check FILE, init REPOSITORY, objectives FILE, template or schema")
			}
		},
	}
}

func checkConfig(e *Env, path string, asJSON bool) error {
	o, err := open(e, path)
	if err != nil {
		return err
	}
	system, spec, tables := o.System(), o.Spec(), o.Tables()
	for _, profile := range tables.Profiles { // one that is not there yet will be measured
		if _, err := profiler.ReadFile(profile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Config, err)
		}
	}
	if asJSON {
		return writeJSON(e.Stdout, struct {
			System   string
			Router   string
			Batcher  string
			Warnings []string
			Spec     any
		}{system.Name, system.Router, system.Batcher, tables.Warnings, spec})
	}
	for _, warning := range tables.Warnings {
		fmt.Fprintf(e.Stdout, "warning: %s\n", warning)
	}
	fmt.Fprintf(e.Stdout,
		"%s is good: %d apps, %d variants, %d workers, %d instances, system %s (router %s, batcher %s)\n", path,
		len(spec.Apps), len(spec.Variants), len(spec.Workers), len(tables.Placement), system.Name, system.Router,
		system.Batcher)
	return nil
}

// checkProduction lists what is open in a configuration.
func checkProduction(e *Env, path string) error {
	f, err := config.Load(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	found := f.Production()
	for _, x := range found {
		fmt.Fprintf(e.Stdout, "%s: %s\n  write: %s\n", x.Field, x.Open, x.Write)
	}
	if len(found) > 0 {
		return fault.Errorf(fault.Config, "%s: %d things are open: docs/security.md says more", path, len(found))
	}
	fmt.Fprintf(e.Stdout, "%s: nothing is open\n", path)
	return nil
}

// printSchema prints the JSON Schema of a kind of file.
func printSchema(e *Env, name string) error {
	text, err := docs.Schema(name)
	if err != nil {
		return fault.Errorf(fault.Usage, "there is no schema %q: name %s", name, strings.Join(docs.Schemas(), ", "))
	}
	_, err = e.Stdout.Write(text)
	return err
}

// schemaFile is where editors find the schema of a sluice.yaml that lies beside it.
const schemaFile = "sluice.schema.json"

// forEditors puts the line before a configuration from which editors know its schema. Where the schema is not there yet
// they would complain: then the line is a remark that says how to get it.
func forEditors(text []byte) []byte {
	line := "# yaml-language-server: $schema=" + schemaFile + "\n"
	if _, err := os.Stat(schemaFile); err != nil {
		line = "# Editors complete and check this file after `sluice config schema > " + schemaFile + "`,\n" +
			"# when the next line begins with one mark.\n#" + line
	}
	return append([]byte(line), text...)
}
