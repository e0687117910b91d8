package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sluice-serving/sluice/operator/controller"
)

func init() {
	register(command{"operator", "make dispatchers, cells and profiles of the resources in a cluster", runOperator})
}

// Calls of the operator are bounded by the API server's own fairness; the client's default of 20/s would make a start
// with many resources slow.
const (
	operatorQPS   = 200
	operatorBurst = 400
)

func runOperator(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("operator", flag.ContinueOnError)
	o := controller.Options{}
	namespaces := fs.String("namespaces", os.Getenv("WATCH_NAMESPACES"),
		"`list` of namespaces to look after, separated by commas; all without")
	fs.StringVar(&o.Image, "image", os.Getenv("SLUICE_IMAGE"), "`image` of dispatchers and workers of fleets "+
		"that name none")
	pull := fs.String("image-pull-policy", os.Getenv("SLUICE_IMAGE_PULL_POLICY"), "`policy` for that image: Always, "+
		"IfNotPresent or Never; the cluster's default without")
	secrets := fs.String("image-pull-secrets", os.Getenv("SLUICE_IMAGE_PULL_SECRETS"), "`list` of secrets for that "+
		"image, separated by commas, in the fleets' namespaces")
	fs.StringVar(&o.Metrics, "metrics", ":8080", "`address` of metrics; 0 for none")
	fs.StringVar(&o.Health, "health", ":8081", "`address` of /healthz and /readyz; 0 for none")
	fs.StringVar(&o.Profiling, "pprof", "", "`address` that answers /debug/pprof/; none without")
	fs.BoolVar(&o.Elect, "leader-elect", true, "have one of several operators work; the others wait to take over")
	fs.StringVar(&o.ElectIn, "leader-elect-namespace", os.Getenv("POD_NAMESPACE"), "`namespace` of the lease for that")
	fs.DurationVar(&o.Redeal, "redeal", 30*time.Second, "`time` after which apps and machines are divided anew by "+
		"the load seen")
	fs.DurationVar(&o.MeasureTimeout, "measure-timeout", time.Hour,
		"`time` that a measurement may take, with the time until it has a machine")
	level := fs.String("log-level", "info", "`level` of the log: debug, info, warn or error")
	kubeconfig := fs.String("kubeconfig", "", "`file` with the API server's address, outside of a cluster")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("operator: %q is not understood", fs.Args())
	}
	o.Namespaces, o.PullPolicy = words(*namespaces), corev1.PullPolicy(*pull)
	for _, name := range words(*secrets) {
		o.PullSecrets = append(o.PullSecrets, corev1.LocalObjectReference{Name: name})
	}
	log, err := newLog(*level)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	api, err := apiServer(*kubeconfig)
	if err != nil {
		return err
	}
	api.QPS, api.Burst = operatorQPS, operatorBurst
	m, err := controller.New(api, o)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}
