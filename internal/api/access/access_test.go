package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func write(t *testing.T, path string, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, want Reason) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Reason != want {
		t.Errorf("%v, want a refusal for %s", err, want)
	}
}

var two = []Tenant{{Name: "shop"}, {Name: "lab"}}

// A key opens what its line says, until it expires or its line is gone. A new line counts without a restart, and a file
// that is wrong leaves the old one in force.
func TestKeysRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	old, oldLine, err := NewKey("till", "shop", Look|Infer, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	next, nextLine, _ := NewKey("till", "shop", Infer, time.Now().Add(time.Hour))
	gone, goneLine, _ := NewKey("temp", "", All, time.Now().Add(-time.Hour))
	if strings.Contains(oldLine, old) || !strings.HasPrefix(old, keyPrefix) {
		t.Fatal("the line holds the key")
	}
	write(t, path, "# keys\n\n"+oldLine+"\n"+goneLine+"\n")
	var troubles []error
	k, err := Keys(path, TenantNumber(two), func(err error) { troubles = append(troubles, err) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	who := func(key string) *Caller {
		now = now.Add(2 * lookAgain)
		c, _ := k.Identify(&Shown{Authorization: "Bearer " + key}, now)
		return c
	}
	if c := who(old); c == nil || c.Name != "till" || c.Tenant != 1 || c.Roles != Look|Infer {
		t.Errorf("the key opens %+v", c)
	}
	if c, _ := k.Identify(&Shown{Key: old}, now); c == nil {
		t.Error("X-API-Key is not read")
	}
	if first, again := who(old), who(old); first == nil || first != again {
		t.Errorf("the key opens %p, and shown again %p", first, again)
	}
	if who(next) != nil || who(old+"x") != nil || who("") != nil || who(gone) != nil {
		t.Error("a key that is unknown or has expired opens something")
	}
	write(t, path, oldLine+"\n"+nextLine+"\n")
	if who(next) == nil || who(old) == nil {
		t.Error("both keys should be in force")
	}
	write(t, path, nextLine+"\n")
	if who(next) == nil || who(old) != nil {
		t.Error("the old key should be out of force")
	}
	write(t, path, nextLine+"\nnonsense "+old+"\n")
	if who(next) == nil || len(troubles) != 1 || strings.Contains(troubles[0].Error(), old) {
		t.Errorf("a wrong file: %v", troubles)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Keys(path, TenantNumber(two), nil); err == nil {
		t.Error("keys that others can write are read")
	}
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	_, good, _ := NewKey("a", "shop", Infer, time.Time{})
	for text, want := range map[string]string{
		good + "\n" + good:                          "line 2: this key was given before",
		strings.Replace(good, "shop", "shed", 1):    `tenant "shed"`,
		strings.Replace(good, "infer", "rule", 1):   `"rule" is no role`,
		strings.Replace(good, "sha256:", "md5:", 1): "sha256:HASH",
		good[:len(good)-2]:                          "sha256:HASH",
		good + " until=2030":                        "expires=TIME",
		"a b":                                       "want NAME TENANT",
	} {
		if _, err := parseKeys([]byte(text), TenantNumber(two)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzKeys(f *testing.F) {
	_, line, _ := NewKey("a", "shop", Infer, time.Unix(1, 0))
	f.Add([]byte(line))
	f.Add([]byte("# x\n\na - look,infer sha256:00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ring, err := parseKeys(b, TenantNumber(two))
		if err != nil {
			return
		}
		for hash, k := range ring.lines {
			if hash != k.hash || k.caller.Roles == 0 || k.caller.Tenant > 2 || k.caller.Name == "" {
				t.Errorf("%q holds %+v", b, k.caller)
			}
		}
	})
}

// The gate lets in whom it should, says whether who or what is missing, and counts refusals.
func TestGate(t *testing.T) {
	c := Certificates(map[string]Caller{"spiffe://x/a": {Tenant: 2, Roles: Infer}, "plain": {Roles: Look}})
	g := New(Config{
		Identifiers: []Identifier{Token(func(time.Time) string { return "a-long-secret-token" }), c},
		Open:        Look, Strict: true, Tenants: two,
	})
	admin := &Shown{Authorization: "bearer a-long-secret-token"}
	if who, err := g.Enter(admin, All); err != nil || who.Name != "admin" {
		t.Errorf("admin: %v %v", who, err)
	}
	if who, err := g.Enter(&Shown{}, Look); err != nil || who.Name != "anonymous" {
		t.Errorf("nobody: %v %v", who, err)
	}
	_, err := g.Enter(&Shown{}, Infer)
	refused(t, err, Unauthenticated)
	_, err = g.Enter(&Shown{Authorization: "Bearer a-long-secret-tokem"}, Look)
	refused(t, err, Unauthenticated) // what is wrong is refused, though nothing would do
	plain := &Shown{Certificate: &x509.Certificate{Subject: pkix.Name{CommonName: "plain"}}}
	if who, err := g.Enter(plain, Look); err != nil || who.Name != "plain" || who.How != "certificate" {
		t.Errorf("a certificate: %v %v", who, err)
	}
	_, err = g.Enter(plain, Deploy)
	refused(t, err, Forbidden)
	_, err = g.Enter(&Shown{Certificate: &x509.Certificate{Subject: pkix.Name{CommonName: "other"}}}, Infer)
	refused(t, err, Unauthenticated)
	got := fmt.Sprint(g.Counts())
	if got != "[{ unauthenticated 3} { forbidden 1}]" {
		t.Errorf("counted %s", got)
	}
	lax := New(Config{Open: Look | Infer, Identifiers: []Identifier{Token(func(time.Time) string { return "" })}})
	if _, err := lax.Enter(&Shown{Authorization: "Bearer whatever-clients-send"}, Infer); err != nil {
		t.Errorf("an open server refuses who shows too much: %v", err)
	}
	if _, err := lax.Enter(&Shown{Authorization: "Bearer "}, Deploy); err == nil {
		t.Error("an empty token opens")
	}
}

// A tenant gets its rate and its concurrency, is told when to come again, and then is let in.
func TestQuota(t *testing.T) {
	now := time.Unix(1000, 0)
	x := newTenant(Tenant{Name: "x", Rate: 10, Burst: 2})
	for range 2 {
		if why, _ := x.admit(now); why != Admitted {
			t.Fatal(why)
		}
	}
	why, retry := x.admit(now)
	if why != TooFast || retry != 100*time.Millisecond {
		t.Errorf("%v, try again in %v", why, retry)
	}
	if q := x.quota(now); q.Limit != 2 || q.Remaining != 0 || q.Reset != 200*time.Millisecond {
		t.Errorf("quota %+v", q)
	}
	if why, _ := x.admit(now.Add(retry)); why != Admitted {
		t.Errorf("after Retry-After: %v", why)
	}
	y := newTenant(Tenant{Name: "y", Concurrency: 1})
	y.admit(now)
	if why, _ := y.admit(now); why != TooManyAtOnce {
		t.Error(why)
	}
	y.leave()
	if why, _ := y.admit(now); why != Admitted {
		t.Error(why)
	}
}

type issuer struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	id  string
}

func newIssuer(t *testing.T, id string) *issuer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t, k, id}
}

func (i *issuer) keySet() string {
	b, err := i.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		i.t.Fatal(err)
	}
	e := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":%q,"x":%q,"y":%q}]}`, i.id,
		e(b[1:33]), e(b[33:]))
}

func (i *issuer) sign(m jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	return i.signed(m, key, claims, nil)
}

// signed is a token with more in its header.
func (i *issuer) signed(m jwt.SigningMethod, key any, claims jwt.MapClaims, header map[string]any) string {
	x := jwt.NewWithClaims(m, claims)
	maps.Copy(x.Header, header)
	x.Header["kid"] = i.id
	s, err := x.SignedString(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

// Tokens of the issuer count, with their tenant and roles, and no others.
func TestJWT(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	own, other := newIssuer(t, "k1"), newIssuer(t, "k1")
	write(t, path, own.keySet())
	x, err := JWT(context.Background(), JWTConfig{
		Issuer: "https://id.example", Audience: "sluice", KeyFile: path, TenantClaim: "tenant", RolesClaim: "scope",
		Tenant: TenantNumber(two),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := jwt.MapClaims{
			"iss": "https://id.example", "aud": "sluice", "sub": "robot", "exp": now.Add(time.Hour).Unix(),
			"tenant": "lab", "scope": "openid sluice:infer look",
		}
		change(c)
		return c
	}
	as := func(c jwt.MapClaims) string { return own.sign(jwt.SigningMethodES256, own.key, c) }
	good := as(claims(func(jwt.MapClaims) {}))
	for range 2 { // the second time from memory
		c, why := x.Identify(&Shown{Authorization: "Bearer " + good}, now)
		if c == nil || c.Name != "robot" || c.Tenant != 2 || c.Roles != Look|Infer || c.How != "jwt" {
			t.Fatalf("%+v %s", c, why)
		}
	}
	none := own.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(func(jwt.MapClaims) {}))
	public, _ := json.Marshal(own.keySet())
	for name, bad := range map[string]string{
		"unsigned":                      none,
		"by the public key as a secret": own.sign(jwt.SigningMethodHS256, public, claims(func(jwt.MapClaims) {})),
		"another's":                     other.sign(jwt.SigningMethodES256, other.key, claims(func(jwt.MapClaims) {})),
		"expired":                       as(claims(func(c jwt.MapClaims) { c["exp"] = now.Add(-time.Hour).Unix() })),
		"without an end":                as(claims(func(c jwt.MapClaims) { delete(c, "exp") })),
		"other issuer":                  as(claims(func(c jwt.MapClaims) { c["iss"] = "https://evil.example" })),
		"other audience":                as(claims(func(c jwt.MapClaims) { c["aud"] = "bank" })),
		"tenant is a number":            as(claims(func(c jwt.MapClaims) { c["tenant"] = 7 })),
		"roles are a number":            as(claims(func(c jwt.MapClaims) { c["scope"] = 7 })),
		"unknown crit": own.signed(jwt.SigningMethodES256, own.key, claims(func(jwt.MapClaims) {}),
			map[string]any{"crit": []string{"b64"}, "b64": false}),
		"other tenant":   as(claims(func(c jwt.MapClaims) { c["tenant"] = "bank" })),
		"without a name": as(claims(func(c jwt.MapClaims) { delete(c, "sub") })),
	} {
		if c, why := x.Identify(&Shown{Authorization: "Bearer " + bad}, now); c != nil || why == "" {
			t.Errorf("%s: %+v %q", name, c, why)
		}
	}
	write(t, path, other.keySet()) // the issuer changes its key: old tokens are over, also remembered ones
	now = now.Add(2 * lookAgain)
	if c, _ := x.Identify(&Shown{Authorization: "Bearer " + good}, now); c != nil {
		t.Error("a token by a withdrawn key counts")
	}
}

// The issuer's keys are fetched at the start, and again for a key that is new, but not for every token that names one.
func TestJWTKeysOfAnIssuer(t *testing.T) {
	first, second := newIssuer(t, "k1"), newIssuer(t, "k2")
	var set atomic.Value
	set.Store(first.keySet())
	var fetched atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = io.WriteString(w, set.Load().(string))
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	x, err := JWT(ctx, JWTConfig{
		Issuer: "i", Audience: "a", KeyURL: server.URL, Roles: Infer, Tenant: TenantNumber(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	knows := func(i *issuer) bool {
		c, _ := x.Identify(&Shown{Authorization: "Bearer " + i.sign(jwt.SigningMethodES256, i.key, jwt.MapClaims{
			"iss": "i", "aud": "a", "sub": "robot", "exp": now.Add(time.Hour).Unix(),
		})}, now)
		return c != nil && c.Roles == Infer
	}
	if !knows(first) {
		t.Error("the first key is unknown")
	}
	set.Store(second.keySet())
	tries := 0
	for !knows(second) { // a look that the machine is too busy for fetches nothing
		if tries++; tries == 10 {
			t.Fatal("the new key is unknown")
		}
	}
	for k := range 50 {
		if knows(newIssuer(t, fmt.Sprint("stranger", k))) {
			t.Error("a stranger's key is known")
		}
	}
	if n := fetched.Load(); n > 3 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// A full file moves on, no entry is split, and so many are kept.
func TestLinesAreBounded(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLines(filepath.Join(dir, "audit"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	l.full = 1000
	for k := range 200 {
		l.Write(Entry{Who: fmt.Sprint(k), What: "POST /v2/x", Result: "200"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != KeptFiles+1 {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		b, _ := os.ReadFile(filepath.Join(dir, f.Name()))
		if len(b) > 1000 {
			t.Errorf("%s has %d bytes", f.Name(), len(b))
		}
		for line := range strings.Lines(string(b)) {
			if err := json.Unmarshal([]byte(line), &Entry{}); err != nil {
				t.Errorf("%s: %q: %v", f.Name(), line, err)
			}
		}
	}
}
