package peertls

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// dial has one replica call another, and returns the error of each end.
func dial(t *testing.T, from, to *Replica, key string) (client, server error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ended := make(chan error, 1)
	called := tls.Server(b, to.Server(&tls.Config{MinVersion: tls.VersionTLS12}))
	go func() {
		err := called.Handshake()
		if state := called.ConnectionState(); err == nil && !From(&state) {
			t.Error("a replica's connection is not known as one")
		}
		ended <- err
	}()
	client = tls.Client(a, from.Client(func() string { return key })).Handshake()
	return client, <-ended
}

func replica(t *testing.T) *Replica {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Replicas know each other by their keys, also one that becomes known while it calls, until they are forgotten.
func TestReplicasKnowEachOther(t *testing.T) {
	a, b := replica(t), replica(t)
	if a.Key() == b.Key() || len(a.Key()) != 64 {
		t.Fatalf("the keys are %q and %q", a.Key(), b.Key())
	}
	b.Know("lease-a", a.Key())
	if client, server := dial(t, a, b, b.Key()); client != nil || server != nil {
		t.Errorf("a replica: %v, %v", client, server)
	}
	for what, key := range map[string]string{"another's": a.Key(), "no": ""} {
		if client, _ := dial(t, a, b, key); client == nil {
			t.Errorf("a replica of %s key is called", what)
		}
	}
	b.Know("lease-a", "")
	began := time.Now()
	if _, server := dial(t, a, b, b.Key()); server == nil || time.Since(began) < patience {
		t.Errorf("one that was forgotten: %v after %v", server, time.Since(began))
	}
	time.AfterFunc(100*time.Millisecond, func() { b.Know("lease-a2", a.Key()) })
	if client, server := dial(t, a, b, b.Key()); client != nil || server != nil {
		t.Errorf("one that becomes known: %v, %v", client, server)
	}
}

// A server of clients stays one for every other name.
func TestClientsStayClients(t *testing.T) {
	r, asked := replica(t), 0
	c := r.Server(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		asked++
		return nil, nil
	}})
	for _, name := range []string{"", "fleet.models.svc", "Replica.sluice.internal", ServerName + "."} {
		if got, err := c.GetConfigForClient(&tls.ClientHelloInfo{ServerName: name}); got != nil || err != nil {
			t.Errorf("%q has the configuration of replicas", name)
		}
		if From(&tls.ConnectionState{ServerName: name}) {
			t.Errorf("%q is a replica's", name)
		}
	}
	if asked != 4 {
		t.Errorf("the clients' own choice was asked %d times", asked)
	}
}
