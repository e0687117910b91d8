package dispatcher

import (
	"crypto/tls"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
)

// secured reads the files of TLS, and makes this replica known by a key to the others. Both are nil without TLS.
func (d *Dispatcher) secured() (*peertls.Replica, *tls.Config, error) {
	if d.o.TLS.Cert == "" {
		return nil, nil, nil
	}
	clients, err := d.o.TLS.Config(func(err error) { d.o.Log.Warn("TLS", "error", err) })
	if err != nil {
		return nil, nil, fmt.Errorf("--tls-cert, --tls-key, --client-ca: %w", err)
	}
	replica, err := peertls.New()
	if err != nil {
		return nil, nil, err
	}
	d.replica, d.me.Key = replica, replica.Key()
	return replica, clients, nil
}

// meet has this replica know the others by their Leases; l is nil for one that was deleted.
func meet(replica *peertls.Replica, fleet, name string, l *coordinationv1.Lease) {
	switch {
	case replica == nil:
	case l == nil:
		replica.Know(name, "")
	case cells.IsMember(fleet, l):
		replica.Know(name, l.Annotations[cells.AnnotationKey])
	}
}
