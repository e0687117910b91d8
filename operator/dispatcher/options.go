package dispatcher

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

// Options configure a dispatcher.
type Options struct {
	Config           *rest.Config
	Namespace, Fleet string
	// Pod is the replica's name, and Address where other pods reach it, without a port.
	Pod, Address string
	// Owner is the pod as an owner of what belongs to it; nil for none.
	Owner *metav1.OwnerReference
	// HTTP, GRPC and Admin are the addresses to listen on.
	HTTP, GRPC, Admin string
	// TLS names the files by which HTTP and GRPC are encrypted; without a Cert they are not.
	TLS listen.TLSFiles
	// Store is a folder that outlives the pod; empty for none.
	Store string
	// Lease is how long a holder of a cell may be silent, in whole seconds; Renew is the time between two renewals.
	Lease, Renew time.Duration
	// Hold is how long a query whose cell nobody serves at the moment waits, and Waiting how many may.
	Hold    time.Duration
	Waiting int
	// NotReady is how long a replica that ends still answers, so that load balancers notice.
	NotReady time.Duration
	// Drain bounds how long accepted queries may take to end.
	Drain time.Duration
	// StatusEvery is the least time between two writes of a status; 0 for 5 s.
	StatusEvery time.Duration
	// Profiling has the admin address answer /debug/pprof/.
	Profiling bool
	// Supply makes the machine supply of a cell; nil where no worker's machine is supplied.
	Supply runner.Supplier
	// Net is what it listens on and reaches other pods over.
	Net listen.Net
	Log *slog.Logger
}

// identity is a replica's own for as long as its process lives: a container that was started again is another replica.
func (o *Options) identity() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return o.Pod + "-" + hex.EncodeToString(b[:])
}

var podName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?$`)

// check reports the first option that cannot be used.
func (o *Options) check() error {
	switch {
	case o.Config == nil:
		return errors.New("no API server is given")
	case o.Namespace == "":
		return errors.New("--namespace is missing: the namespace of the fleet")
	case o.Fleet == "":
		return errors.New("--fleet is missing: the name of the fleet")
	case !podName.MatchString(o.Pod):
		return fmt.Errorf("--pod is %q: want the name of this pod, in small letters, digits, dashes and dots", o.Pod)
	case net.ParseIP(o.Address) == nil:
		return fmt.Errorf("--address is %q: want the IP address of this pod, where the others reach it", o.Address)
	case o.Renew <= 0 || o.Lease < 2*o.Renew:
		return fmt.Errorf("--lease is %v and --renew %v: want a lease of at least twice the time between two renewals",
			o.Lease, o.Renew)
	case (o.TLS.Cert == "") != (o.TLS.Key == ""):
		return errors.New("give both --tls-cert and --tls-key, or neither")
	case o.TLS.Cert == "" && o.TLS.ClientCA != "":
		return errors.New("--client-ca has no effect without --tls-cert and --tls-key")
	case o.TLS.ClientCA == "" && o.TLS.ClientOptional:
		return errors.New("--client-optional has no effect without --client-ca")
	case o.Lease%time.Second != 0:
		return fmt.Errorf("--lease is %v: want whole seconds", o.Lease)
	}
	return nil
}
