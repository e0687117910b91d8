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
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/longtest"
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

// A quiet tenant keeps its objective while another sends ten times its share, live, from another address or from the
// same, as behind an ingress. SLUICE_LONG has it last for three minutes and print what docs/overload.md has.
func TestNoisyTenantLive(t *testing.T) {
	dir := t.TempDir()
	quiet, first := keyOf(t, "--tenant", "quiet", "q")
	noisy, second := keyOf(t, "--tenant", "noisy", "n")
	write(t, dir, "keys", "%s", first+second)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 40ms, latency_per_item: 4ms}}]
apps:
  - name: echo
    slo: {latency: 250ms}
    demand: 100
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
access: {keys: keys}
tenants: [{name: quiet}, {name: noisy}]
server: {not_ready: 0s, grpc: "off", admin: "off", http: "127.0.0.1:0"}
`)
	const quietRate, noisyRate = 25, 250 // queries/s, of 111 that the machine carries
	seconds := longtest.Of(2, 60)
	for seed, noise := range []struct {
		from string // address of the noisy tenant's clients; none for nobody
		what string
	}{{"", "alone"}, {"127.0.0.2", "beside the other"}, {"127.0.0.1", "from one address"}} {
		url := serve(t, "-f", file).url() + "/v2/"
		untilStatus(t, url+"health/ready", 200)
		infer := url + "models/echo/infer"
		if got := send(t, http.DefaultClient, "POST", infer, "", oneQuery); got != 401 {
			t.Fatalf("without a key: %d", got)
		}
		var both sync.WaitGroup
		var other arrived
		if noise.from != "" {
			both.Go(func() { other = sends(t, noise.from, infer, noisy, noisyRate, seconds, uint64(2*seed)) })
		}
		own := sends(t, "127.0.0.1", infer, quiet, quietRate, seconds, uint64(2*seed+1))
		both.Wait()
		t.Logf("%s: quiet %v; noisy %v", noise.what, own, other)
		if noise.from != "" && other.sent < 3*own.sent {
			t.Error("the noisy tenant made no noise")
		}
		// Without shares most would be: more than twice as much comes as is served.
		if late := own.sent - own.by[http.StatusOK]; late > own.sent/10+5 {
			t.Errorf("%s: %d of %d queries of the quiet tenant were not answered in time", noise.what, late, own.sent)
		}
	}
}

// arrived is what came of queries: how many were sent, and answered with which status, 0 for none.
type arrived struct {
	sent int
	by   map[int]int
}

// sends sends queries by chance at a rate from an address, waiting for nobody.
func sends(t *testing.T, from, url, key string, rate float64, seconds int, seed uint64) arrived {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{MaxIdleConnsPerHost: 400, DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	out := arrived{by: make(map[int]int)}
	var mu sync.Mutex
	var all sync.WaitGroup
	rng := mathrand.New(mathrand.NewPCG(seed, 40))
	due := time.Now()
	for end := due.Add(time.Duration(seconds) * time.Second); due.Before(end); out.sent++ {
		due = due.Add(time.Duration(rng.ExpFloat64() / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		all.Go(func() {
			code := 0
			if r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(oneQuery)); err == nil {
				r.Header.Set("Authorization", "Bearer "+key)
				if resp, err := c.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					code = resp.StatusCode
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out.by[code]++
		})
	}
	all.Wait()
	return out
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
