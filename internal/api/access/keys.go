package access

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// keyPrefix begins every key, so that scanners of code and logs find leaked ones.
	keyPrefix = "sluice_"
	hashName  = "sha256:"
	// shortestKey bounds keys from below. Keys are random (rand.Text has 130 bits), so that a plain hash protects them:
	// nobody can try them all.
	shortestKey = 26
)

// NewKey makes a key and the line of a key file for it. Only the line is to be kept: it holds a hash of the key.
// expires is zero for a key that does not.
func NewKey(name, tenant string, r Roles, expires time.Time) (key, line string, err error) {
	if err := checkWord("name", name); err != nil {
		return "", "", err
	}
	if tenant == "" {
		tenant = "-"
	} else if err := checkWord("tenant", tenant); err != nil {
		return "", "", err
	}
	if r == 0 {
		return "", "", errors.New("a key without a role opens nothing")
	}
	key = keyPrefix + rand.Text()
	sum := sha256.Sum256([]byte(key))
	line = fmt.Sprintf("%s %s %s %s%s", name, tenant, r, hashName, hex.EncodeToString(sum[:]))
	if !expires.IsZero() {
		line += " expires=" + expires.UTC().Format(time.RFC3339)
	}
	return key, line, nil
}

// longestWord bounds names, in bytes.
const longestWord = 100

func checkWord(what, s string) error {
	if s == "" || len(s) > longestWord || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) ||
		s[0] == '#' || s == "-" {
		return fmt.Errorf("%s %.40q: want 1 to %d characters without spaces", what, s, longestWord)
	}
	return nil
}

// keyLine is a line of a key file.
type keyLine struct {
	hash    [sha256.Size]byte
	caller  *Caller
	expires time.Time
}

// keyRing finds keys by their hash.
type keyRing struct {
	lines map[[sha256.Size]byte]*keyLine
	shown shownKeys
}

// parseKeys reads a key file: lines of NAME TENANT ROLE,ROLE... sha256:HASH [expires=TIME], TENANT - for none. Lines
// that begin with # are remarks. Several lines may have one name, so that a key can be replaced: add the new one, have
// its callers change, remove the old one. tenant returns the number of a tenant, and false for an unknown one.
func parseKeys(b []byte, tenant func(string) (int, bool)) (*keyRing, error) {
	ring := &keyRing{lines: make(map[[sha256.Size]byte]*keyLine)}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		k, err := parseKey(fields, tenant)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if ring.lines[k.hash] != nil {
			return nil, fmt.Errorf("line %d: this key was given before", n)
		}
		ring.lines[k.hash] = k
	}
	return ring, lines.Err()
}

func parseKey(fields []string, tenant func(string) (int, bool)) (*keyLine, error) {
	if len(fields) < 4 || len(fields) > 5 {
		return nil, errors.New("want NAME TENANT ROLE,ROLE... sha256:HASH, as sluice key writes it")
	}
	if err := checkWord("name", fields[0]); err != nil {
		return nil, err
	}
	k := &keyLine{caller: &Caller{Name: fields[0], How: byKey}}
	if fields[1] != "-" {
		ok := false
		if k.caller.Tenant, ok = tenant(fields[1]); !ok {
			return nil, fmt.Errorf("tenant %.40q is none of the configuration's tenants", fields[1])
		}
	}
	var err error
	if k.caller.Roles, err = ParseRoles(strings.Split(fields[2], ",")); err != nil {
		return nil, err
	}
	hash, ok := strings.CutPrefix(fields[3], hashName)
	sum, err := hex.DecodeString(hash)
	if !ok || err != nil || copy(k.hash[:], sum) != sha256.Size || len(sum) != sha256.Size {
		// The text may be a key that somebody wrote where its hash belongs.
		return nil, errors.New("the fourth word is no sha256:HASH of 64 hexadecimal digits")
	}
	if len(fields) == 5 {
		text, ok := strings.CutPrefix(fields[4], "expires=")
		if k.expires, err = time.Parse(time.RFC3339, text); !ok || err != nil {
			return nil, fmt.Errorf("%.60q: want expires=TIME, such as expires=2030-01-31T00:00:00Z", fields[4])
		}
	}
	return k, nil
}

// keys knows callers by the keys of a file.
type keys struct{ file *Watched[*keyRing] }

// Keys returns what knows callers by the API keys of a file, which is read again when it changes. Others than its owner
// must not be able to write it.
func Keys(path string, tenant func(string) (int, bool), trouble func(error)) (Identifier, error) {
	f, err := Watch(path, trouble, func(b []byte) (*keyRing, error) {
		if st, err := os.Stat(path); err == nil && st.Mode().Perm()&0o022 != 0 {
			return nil, fmt.Errorf("can be written by others than its owner (mode %#o): chmod go-w it",
				st.Mode().Perm())
		}
		return parseKeys(b, tenant)
	})
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return &keys{f}, nil
}

// Identify implements Identifier.
func (k *keys) Identify(s *Shown, now time.Time) (*Caller, string) {
	secret := s.secret()
	if len(secret) < shortestKey {
		return nil, ""
	}
	line := k.file.Get(now).find(secret)
	if line == nil {
		return nil, ""
	}
	if !line.expires.IsZero() && now.After(line.expires) {
		return nil, "the key has expired"
	}
	return line.caller, ""
}

// find returns the line of a key; nil for none.
func (r *keyRing) find(secret string) *keyLine {
	if line := r.shown.find(secret); line != nil {
		return line
	}
	sum := sha256.Sum256([]byte(secret))
	line := r.lines[sum] // by its hash: the time that this takes says nothing of the key
	if line == nil || subtle.ConstantTimeCompare(line.hash[:], sum[:]) != 1 {
		return nil
	}
	r.shown.add(secret, line)
	return line
}

// token knows the administrator by one token.
type token struct {
	get    func(time.Time) string
	caller *Caller
}

// Token returns what knows the administrator, who may do all, by the token that get returns; "" is shown by nobody.
func Token(get func(time.Time) string) Identifier {
	return &token{get, &Caller{Name: "admin", How: byToken, Roles: All}}
}

// Identify implements Identifier.
func (t *token) Identify(s *Shown, now time.Time) (*Caller, string) {
	secret, want := s.secret(), t.get(now)
	if secret == "" || want == "" || quickSum(secret) != quickSum(want) {
		return nil, "" // most callers are not the administrator, and the sums below take ten times as long
	}
	// Sums have one length, so that a comparison does not reveal the token's.
	a, b := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return nil, ""
	}
	return t.caller, ""
}
