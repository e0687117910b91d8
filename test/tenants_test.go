package test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// keyOf makes a key by the program, and returns it with its line.
func keyOf(t *testing.T, args ...string) (key, line string) {
	t.Helper()
	status, out, errs := run(t.Context(), append([]string{"key"}, args...)...)
	if status != 0 {
		t.Fatal(errs)
	}
	return strings.TrimSpace(errs), out
}

// send sends a request with a key and returns the status.
func send(t *testing.T, c *http.Client, method, url, key, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// A quiet tenant keeps its objective while another sends ten times its share, live. Its own clients wait for nobody.
func TestNoisyTenantLive(t *testing.T) {
	dir := t.TempDir()
	quiet, first := keyOf(t, "--tenant", "quiet", "q")
	noisy, second := keyOf(t, "--tenant", "noisy", "n")
	write(t, dir, "keys", "%s", first+second)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 20ms, latency_per_item: 1ms}}]
apps:
  - name: echo
    slo: {latency: 400ms}
    demand: 100
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
access: {keys: keys}
tenants: [{name: quiet}, {name: noisy}]
server: {not_ready: 0s, grpc: "off", admin: "off", http: "127.0.0.1:0"}
`)
	url := serve(t, "-f", file).url() + "/v2/"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400}}
	defer client.CloseIdleConnections()
	untilStatus(t, url+"health/ready", 200)
	infer := url + "models/echo/infer"
	if got := send(t, client, "POST", infer, "", oneQuery); got != 401 {
		t.Fatalf("without a key: %d", got)
	}
	// The machine carries about 8 / 28 ms = 285 queries/s. Each of the noisy clients sends its next query at once.
	var wg sync.WaitGroup
	var over atomic.Bool
	var served, refused atomic.Int64
	for range 300 {
		wg.Go(func() {
			for !over.Load() {
				if send(t, client, "POST", infer, noisy, oneQuery) == 200 {
					served.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	const each, queries = 20 * time.Millisecond, 150 // 50 queries/s, of a share of 140
	bad := 0
	var mu sync.Mutex
	var asking sync.WaitGroup
	tick := time.NewTicker(each)
	for range queries {
		<-tick.C
		asking.Go(func() {
			if got := send(t, client, "POST", infer, quiet, oneQuery); got != 200 {
				mu.Lock()
				bad++
				mu.Unlock()
			}
		})
	}
	tick.Stop()
	asking.Wait()
	over.Store(true)
	wg.Wait()
	t.Logf("quiet: %d of %d without an answer in time; noisy: %d answered, %d not", bad, queries, served.Load(),
		refused.Load())
	if served.Load()+refused.Load() < 3*queries {
		t.Error("the noisy tenant made no noise")
	}
	if bad > queries/10 { // without shares most would be: fifteen times as much comes as is served
		t.Errorf("%d of %d queries of the quiet tenant were not answered in time", bad, queries)
	}
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
	next int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a *authority) issue(name string) (cert, key string) {
	own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.next++
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.next), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		NotBefore: time.Unix(a.next, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, &own.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}))
}

// With mutual TLS a client's certificate says who it is. A new certificate of the server, and a key that is withdrawn,
// count without a restart. Changes are in the audit log.
func TestMutualTLSAndRotation(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	put := func(name, text string) { write(t, dir, name, "%s", text) }
	cert, key := a.issue("server one")
	put("server.pem", cert)
	put("server.key", key)
	put("ca.pem", a.pem)
	operator, line := keyOf(t, "--roles", "look,administer", "operator")
	put("keys", line)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - name: echo
    slo: {latency: 2s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
access: {keys: keys, certificates: [{name: till, roles: [infer]}], audit: audit.jsonl}
server:
  tls: {cert: server.pem, key: server.key, client_ca: ca.pem, client_optional: true, admin: true}
  not_ready: 0s
  grpc: "off"
  http: "127.0.0.1:0"
  admin: "127.0.0.1:0"
`)
	server := serve(t, "-f", file)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	with := func(pairs ...tls.Certificate) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: pairs}}}
	}
	clientPair := func(name string) tls.Certificate {
		cert, key := a.issue(name)
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	bare := with()
	https := "https://" + server.http
	until(t, func() bool {
		resp, err := bare.Get(https + "/v2/health/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == 200
	})
	for _, x := range []struct {
		who    string
		client *http.Client
		want   int
	}{{"till", with(clientPair("till")), 200}, {"another", with(clientPair("another")), 401}, {"nobody", bare, 401}} {
		if got := send(t, x.client, "POST", https+"/v2/models/echo/infer", "", oneQuery); got != x.want {
			t.Errorf("%s: %d, want %d", x.who, got, x.want)
		}
	}
	prices := "https://" + server.admin + "/prices"
	r, _ := http.NewRequest("PUT", prices, strings.NewReader(`{"device_type":"any","price_per_hour":2}`))
	r.Header.Set("Authorization", "Bearer "+operator)
	r.Header.Set("Content-Type", "application/json")
	resp, err := bare.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || !bytes.Contains(log, []byte(`"who":"operator"`)) || !bytes.Contains(log, []byte("PUT /prices")) ||
		bytes.Contains(log, []byte(operator)) {
		t.Errorf("audit log %s %v", log, err)
	}
	cert, key = a.issue("server two")
	put("server.key", key)
	put("server.pem", cert)
	until(t, func() bool {
		c, err := tls.Dial("tcp", server.http, &tls.Config{RootCAs: roots})
		if err != nil {
			return false
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName == "server two"
	})
	_, other := keyOf(t, "other")
	put("keys", other)
	until(t, func() bool { return send(t, bare, "GET", prices, operator, "") == 401 })
}
