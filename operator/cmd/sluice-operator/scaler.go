package main

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sluice-serving/sluice/operator/scaler"
)

func init() {
	register(command{"scaler", "tell KEDA and the HorizontalPodAutoscaler how busy apps are", runScaler})
}

func runScaler(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("scaler", flag.ContinueOnError)
	o := scaler.Options{Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	namespaces := fs.String("namespaces", "", "`list` of namespaces, separated by commas; all without")
	fs.StringVar(&o.Listen, "listen", ":9090", "`address` of KEDA's external scaler protocol")
	fs.StringVar(&o.ExternalMetrics, "external-metrics", "", "`address` of the external metrics API; none without")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.Namespaces = words(*namespaces)
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	var err error
	if o.Config, err = apiServer(""); err != nil {
		return err
	}
	s, err := scaler.New(ctx, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
