package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-serving/sluice/operator/dispatcher"
	"github.com/sluice-serving/sluice/operator/supply"
)

func init() {
	register(command{"dispatcher", "answer the queries of a fleet, and run the engines of its cells", runDispatcher})
}

// runDispatcher is a pod of the Deployment FLEET-dispatcher. What it is called and where it is reached comes from the
// environment (POD_NAME, POD_NAMESPACE, POD_IP, POD_UID), or from flags.
func runDispatcher(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("dispatcher", flag.ContinueOnError)
	o := dispatcher.Options{}
	fs.StringVar(&o.Fleet, "fleet", os.Getenv("SLUICE_FLEET"), "`name` of the fleet")
	fs.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "`namespace` of the fleet")
	fs.StringVar(&o.Pod, "pod", os.Getenv("POD_NAME"), "`name` of this pod")
	fs.StringVar(&o.Address, "address", os.Getenv("POD_IP"), "IP `address` at which other pods reach this one")
	fs.StringVar(&o.HTTP, "http", ":8000", "`address` to answer HTTP on")
	fs.StringVar(&o.GRPC, "grpc", ":8001", "`address` to answer gRPC on")
	fs.StringVar(&o.Admin, "admin", ":8002", "`address` of metrics, health and the cells' dashboards")
	fs.StringVar(&o.TLS.Cert, "tls-cert", "", "`file` with the certificate that encrypts HTTP and gRPC, read again "+
		"when it changes; none without")
	fs.StringVar(&o.TLS.Key, "tls-key", "", "`file` with its key")
	fs.StringVar(&o.TLS.ClientCA, "client-ca", "", "`file` of authorities; clients must show a certificate of one of "+
		"them")
	fs.BoolVar(&o.TLS.ClientOptional, "client-optional", false, "let clients without a certificate connect, too")
	fs.StringVar(&o.Store, "store", os.Getenv("SLUICE_STORE"), "`folder` that outlives the pod, for what is learned; "+
		"none without")
	fs.DurationVar(&o.Lease, "lease", 3*time.Second, "`time` after which a silent replica's cells are taken over")
	fs.DurationVar(&o.Renew, "renew", time.Second, "`time` between two renewals of a lease")
	fs.DurationVar(&o.Hold, "hold", 10*time.Second, "`time` that a query waits while nobody serves its cell")
	fs.IntVar(&o.Waiting, "waiting", 4096, "`number` of queries that may wait so at once")
	fs.DurationVar(&o.NotReady, "not-ready", 5*time.Second, "`time` that a replica that stops still answers, so that "+
		"load balancers notice")
	fs.DurationVar(&o.Drain, "drain", 30*time.Second, "`time` that accepted queries may take when a replica stops")
	fs.DurationVar(&o.StatusEvery, "status-every", 5*time.Second, "least `time` between two writes of a status")
	fs.BoolVar(&o.Profiling, "pprof", false, "answer /debug/pprof/ on the admin address")
	level := fs.String("log-level", "info", "`level` of the log: debug, info, warn or error")
	kubeconfig := fs.String("kubeconfig", "", "`file` with the API server's address, outside of a cluster")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("dispatcher: %q is not understood", fs.Args())
	}
	var err error
	if o.Log, err = newLog(*level); err != nil {
		return err
	}
	if o.Config, err = apiServer(*kubeconfig); err != nil {
		return err
	}
	if uid := os.Getenv("POD_UID"); uid != "" {
		o.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: o.Pod, UID: types.UID(uid)}
	}
	o.Pod = cmp.Or(o.Pod, hostname())
	source, err := supply.NewSource(ctx, o.Config, o.Namespace, o.Fleet)
	if err != nil {
		return err
	}
	defer source.Close()
	o.Supply = source.Supplier(o.Log)
	d, err := dispatcher.New(o)
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
