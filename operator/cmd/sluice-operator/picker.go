package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sluice-serving/sluice/operator/picker"
)

func init() {
	register(command{"picker", "tell gateways where requests go (endpoint picker of InferencePools)", runPicker})
}

func runPicker(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("picker", flag.ContinueOnError)
	o := picker.Options{Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)), Key: os.Getenv("SLUICE_TOKEN")}
	fs.StringVar(&o.Fleet, "fleet", "", "`name` of the fleet")
	fs.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "`namespace` of the fleet")
	fs.StringVar(&o.Listen, "listen", ":9002", "`address` of external processing")
	fs.StringVar(&o.Health, "health", ":9003", "`address` of the health services for probes")
	fs.StringVar(&o.Service, "service", "", "`name` of this picker's Service; with it the pools FLEET and "+
		"FLEET-grpc are published")
	fs.DurationVar(&o.Every, "every", time.Second, "`time` between two looks at what the cells have loaded")
	fs.IntVar(&o.Admin, "admin", 8002, "`port` of the dispatchers' admin address")
	fs.Int64Var(&o.Most, "most", 64, "`number` of requests that a worker may have under way for an app; further "+
		"ones are answered with 429. 0 for no bound")
	mode := fs.String("failure-mode", "FailClose", "what gateways do while no picker answers: FailClose or FailOpen")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *mode != "FailClose" && *mode != "FailOpen" {
		return fmt.Errorf("--failure-mode is %q: FailClose or FailOpen", *mode)
	}
	o.FailOpen = *mode == "FailOpen"
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	var err error
	if o.Config, err = apiServer(""); err != nil {
		return err
	}
	picker.Tune()
	p, err := picker.New(o)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}
