package cli

import (
	"flag"
	"log/slog"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/host/fault"
)

func serveCommand() command {
	return command{
		name: "serve", summary: "serve the apps of a sluice.yaml over the Open Inference Protocol",
		usage: "-f sluice.yaml",
		about: `
Loads the models, answers queries over HTTP and gRPC and chooses batches so that the latency objectives hold.
Metrics are at /metrics of the HTTP port, decisions at /debug/decisions of the admin port. On SIGTERM the server
turns not ready, finishes what it has accepted, and exits. Without a profile it measures the models first and
keeps what it measured; a system that learns latency while it serves (option learn) begins without.`,
		examples: "sluice serve -f sluice.yaml\nsluice serve -f sluice.yaml --http 127.0.0.1:9000 --grpc off\ncurl " +
			"localhost:8000/v2/health/ready",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			var o host.ServerOptions
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			profile := fs.String("profile", "", "profile `file` instead of those of the configuration")
			system := fs.String("system", "", "`name` of another system than the configuration's, or ROUTER+BATCHER")
			fs.StringVar(&o.HTTP, "http", "", "HTTP `address`, or off; instead of the configuration's")
			fs.StringVar(&o.GRPC, "grpc", "", "gRPC `address`, or off; instead of the configuration's")
			fs.StringVar(&o.Admin, "admin", "", "admin `address`, or off; instead of the configuration's")
			fs.BoolVar(&o.Strict, "strict-readiness", false, "not ready while a model cannot be loaded")
			fs.StringVar(&o.SharedMemory, "shared-memory", "", "`prefix` of the shared memory objects that clients may use, "+
				"/ for all; instead of the configuration's")
			fs.StringVar(&o.Journal, "journal", "", "write all inputs and decisions to this `file`")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				opened, err := openUnder(e, *file, *system)
				if err != nil {
					return err
				}
				profiled, err := opened.EnsureProfile(e.Context, paths(*profile)...)
				if err != nil {
					return err
				}
				o.LogLevel = &slog.LevelVar{}
				o.Log = logger(e, &opened.File().Telemetry, o.LogLevel)
				server, err := profiled.NewServer(e.Context, o)
				if err != nil {
					return err
				}
				e.bar.clear()
				return server.Serve(e.Context)
			}
		},
	}
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
