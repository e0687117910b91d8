package cli

import (
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/host/server"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "serve the apps of a sluice.yaml over the Open Inference Protocol",
		usage: "-f sluice.yaml | MODEL.onnx | REPOSITORY | FILE.py[:CLASS]",
		about: `
With a model file, a class in Python, or a folder of models laid out as NAME/VERSION/model.onnx, nothing has to be
written: inputs, outputs and versions are read, latencies are measured in seconds, and objectives are proposed from
them. Python needs an interpreter with numpy (docs/python.md).
--print-config shows the sluice.yaml that this amounts to.
Loads the models, answers queries over HTTP and gRPC and chooses batches so that the latency objectives hold.
Metrics are at /metrics of the admin port, decisions at /debug/decisions there. On SIGTERM the server
turns not ready, still answers for server.not_ready so that load balancers notice, finishes what it has accepted,
and exits; a second signal ends server.not_ready, a third one the process. Without a profile it
has a look at the models, serves, measures them while it is idle, and keeps what it measured; with --profile-first
it measures them before it serves. A system that learns latency while it serves (option learn) begins without.`,
		examples: "sluice serve model.onnx\nsluice serve models/\nsluice serve app.py:Model\n" +
			"sluice serve -f sluice.yaml\nsluice serve -f " +
			"sluice.yaml --http 127.0.0.1:9000 --grpc off\ncurl " +
			"localhost:8000/v2/health/ready",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			var o server.Options
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			show := fs.Bool("print-config", false, "print the configuration of a model or a repository, and do not "+
				"serve")
			profile := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "another `system` than the configuration's, or ROUTER+BATCHER")
			fs.StringVar(&o.HTTP, "http", "", "HTTP `address`, or off; instead of the configuration's")
			fs.StringVar(&o.GRPC, "grpc", "", "gRPC `address`, or off; instead of the configuration's")
			fs.StringVar(&o.Admin, "admin", "", "admin `address`, or off; instead of the configuration's")
			fs.StringVar(&o.Name, "name", "", "`name` in the server's metadata, which some clients compare; instead "+
				"of the configuration's")
			fs.BoolVar(&o.Strict, "strict-readiness", false, "not ready while a model cannot be loaded")
			fs.StringVar(&o.SharedMemory, "shared-memory", "", "`prefix` of the shared memory objects that clients "+
				"may use, / for all; instead of the configuration's")
			var output config.Size
			fs.Func("output-limit", "the most that the outputs of one query take, a `size` such as 2GiB; instead of "+
				"the configuration's server.limits.output", func(s string) (err error) {
				if output, err = config.ParseSize(s); err == nil && output < 1 {
					err = errors.New("want at least 1 byte")
				}
				return err
			})
			first := fs.Bool("profile-first", false, "measure all models before serving, rather than while the server "+
				"is idle")
			models := modelFlags(fs)
			fs.BoolVar(&o.ModelControl, "clients-control-models", false, "let every client load and unload models, "+
				"not only callers of the admin address or with the admin token")
			fs.StringVar(&o.Journal, "journal", "", "write all inputs and decisions to this `file`")
			return func(e *Env, args []string) error {
				profiled, err := servedConfiguration(e, args, *file, *system, *profile, models, *first)
				if err != nil {
					return err
				}
				if output > 0 {
					profiled = profiled.WithOutputLimit(output)
				}
				if *show {
					return printConfig(e, profiled)
				}
				o.LogLevel = &slog.LevelVar{}
				o.Log = logger(e, &profiled.File().Telemetry, o.LogLevel)
				if e.Hurry != nil {
					o.Hurry = e.Hurry()
				}
				o.WhatIf = answerInChild
				server, err := server.New(e.Context, profiled, o)
				if err != nil {
					return err
				}
				e.bar.clear()
				if len(args) > 0 {
					banner(e, profiled, server)
				}
				return server.Serve(e.Context)
			}
		},
	}
}

// servedConfiguration opens what is to be served: the models at a path, or a sluice.yaml.
func servedConfiguration(e *Env, args []string, file, system, profile string, models *config.Models, first bool) (
	*host.Profiled, error) {
	switch {
	case len(args) > 1:
		return nil, fault.Errorf(fault.Usage, "%q is not understood", args[1:])
	case len(args) == 1 && profile != "":
		return nil, fault.Errorf(fault.Usage, "--profile goes with -f: the models of a path are measured")
	case len(args) == 1:
		return openPath(e, args[0], system, models, first)
	}
	if err := notConfiguration(file); err != nil {
		return nil, err
	}
	options := terminalOptions(e)
	options.Models, options.ProfileFirst = *models, first
	opened, err := openWith(file, system, options)
	if err != nil {
		return nil, err
	}
	return measuring.EnsureProfile(e.Context, opened, paths(profile)...)
}

// defaultConfig is what -f is where it is not given.
const defaultConfig = "sluice.yaml"

// notConfiguration returns what to do instead where a path is no sluice.yaml, but models, or nothing by default.
func notConfiguration(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == defaultConfig:
		return fault.Errorf(fault.Usage, "there is no %s here: name what to serve, which is a model file, a class in "+
			"Python or a folder of models, or a configuration with -f", path)
	case err == nil && (st.IsDir() || filepath.Ext(path) == ".onnx" || config.IsPython(path)):
		return fault.Errorf(fault.Usage, "-f %s: models are served without a configuration: sluice serve %s", path,
			path)
	}
	return nil
}

// modelFlags are the flags that say which models a running server has. Their defaults leave that to the configuration.
func modelFlags(fs *flag.FlagSet) *config.Models {
	m := &config.Models{}
	fs.StringVar(&m.Control, "model-control-mode", "", "none, poll or explicit: which models of the repository a "+
		"running server has; instead of the configuration's models.control")
	fs.Func("load-model", "`model` to begin with under explicit control, * for all; may be given again",
		func(s string) error {
			m.Load = append(m.Load, s)
			return nil
		})
	fs.IntVar(&m.Limit, "model-limit", 0, "most `models` of the repository that the server has at once; instead of "+
		"the configuration's models.limit")
	fs.Func("repository-poll-secs", "`seconds` between two looks at the repository under control by polling",
		func(s string) error {
			n, err := strconv.ParseFloat(s, 64)
			if err != nil || !(n > 0) || n > 1e6 {
				return errors.New("want a number of seconds above 0")
			}
			m.Poll = config.Duration(n * float64(time.Second))
			return nil
		})
	return m
}

// printConfig prints the file of a configuration.
func printConfig(e *Env, p *host.Profiled) error {
	text, err := os.ReadFile(p.Name())
	if err == nil {
		_, err = e.Stdout.Write(forEditors(text))
	}
	return err
}

// logger logs to Stderr in the format of the configuration, at a level that it sets to that of the configuration.
func logger(e *Env, t *config.Telemetry, level *slog.LevelVar) *slog.Logger {
	_ = level.UnmarshalText([]byte(t.LogLevel)) // checked with the file
	o := &slog.HandlerOptions{Level: level}
	if t.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(e.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(e.Stderr, o))
}
