package picker

import (
	"context"
	"net"
	"net/http"
)

// keyed shows a key with every request, if there is one.
type keyed struct {
	key string
	to  *http.Transport
}

func newKeyed(o Options) keyed {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if dial := o.Net.Dialer; dial != nil {
		t.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	}
	return keyed{o.Key, t}
}

// RoundTrip implements http.RoundTripper.
func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return k.to.RoundTrip(r)
}

// CloseIdleConnections implements what http.Client looks for.
func (k keyed) CloseIdleConnections() { k.to.CloseIdleConnections() }
