package cli

import (
	"flag"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/node"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
)

func nodeCommand() command {
	return command{
		name: "node", summary: "run models for a dispatcher, as a worker of a fleet",
		usage: "[flags] REPOSITORY",
		about: `
Serves the models of a folder laid out as NAME/VERSION/model.onnx or NAME/VERSION/model.py over the Open
Inference Protocol, loads and unloads them as it is asked, and runs each request at once, as it comes: it does
not batch, queue or drop. That is what a dispatcher does, such as sluice serve with workers of kind supplied.
A load may have the model's configuration and file with it, as loads of Triton may; the repository can be empty.
It is ready when what --load names is warm. On SIGTERM it finishes what runs, and exits.
Everybody who reaches it may load models: its addresses are for the dispatcher alone.`,
		examples: "sluice node models/\nsluice node --grpc 127.0.0.1:9001 --load '*' models/",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			c := node.Config{Server: server.Config{Name: "sluice node"}}
			fs.StringVar(&c.Server.GRPC, "grpc", "127.0.0.1:8001", "gRPC `address`, or off")
			fs.StringVar(&c.Server.HTTP, "http", "off", "HTTP `address`, or off")
			fs.Func("load", "`model` to begin with, * for all; may be given again", func(s string) error {
				c.Preload = append(c.Preload, s)
				return nil
			})
			fs.IntVar(&c.Cores, "cores", 0, "threads of a run where the dispatcher says nothing; 0 for all")
			fs.IntVar(&c.Slots, "slots", 1, "runs of a model beside each other where the dispatcher says nothing")
			fs.Func("provider", "execution `provider` of ONNX Runtime, cuda or cpu; may be given again, the "+
				"preferred one first", func(s string) error {
				if s != onnx.CUDA && s != onnx.CPU {
					return fault.Errorf(fault.Usage, "%q is neither cuda nor cpu", s)
				}
				c.Device.Providers = append(c.Device.Providers, s)
				return nil
			})
			fs.BoolVar(&c.Device.Pin, "pin-cores", false, "bind the runs of models that are loaded with cores to "+
				"processors of their own")
			fs.StringVar(&c.Python.Interpreter, "interpreter", "", "Python for models in Python; the first that "+
				"has numpy where it is not given")
			fs.BoolVar(&c.SentPython, "sent-python", false, "take files of Python with a load: they are code of "+
				"whoever reaches the node")
			fetch := fs.String("fetch", "", "`program` with arguments, apart by spaces, that fetches a model that the "+
				"repository lacks: it gets --to, the repository, and the model's name; none without")
			base := fs.Duration("fake", 0, "answer for any model with copies of the inputs, each run taking this "+
				"`time`; without REPOSITORY")
			item := fs.Duration("fake-item", 0, "`time` that each item of a batch adds, with --fake")
			fs.DurationVar(&c.Server.DrainTimeout, "drain", 0, "`time` for what runs to end after SIGTERM")
			return func(e *Env, args []string) error {
				if *base > 0 || *item > 0 {
					var err error
					if c.Fake, err = fake.New(fake.Config{Latency: func(_ serving.VariantID, n int) time.Duration {
						return *base + time.Duration(n)**item
					}}); err != nil {
						return err
					}
				}
				if c.Fake != nil && len(args) == 0 {
					args = []string{"."}
				}
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "want one REPOSITORY, a folder of models")
				}
				c.Repository = args[0]
				if st, err := os.Stat(c.Repository); err != nil || !st.IsDir() {
					return fault.Errorf(fault.Usage, "%s is no folder of models", c.Repository)
				}
				if program := strings.Fields(*fetch); len(program) > 0 {
					c.Fetch = node.FetchBy(program)
				}
				c.Server.Version = host.Version()
				c.Log = slog.New(slog.NewTextHandler(e.Stderr, nil))
				n, err := node.New(c)
				if err != nil {
					return err
				}
				return n.Serve(e.Context)
			}
		},
	}
}
