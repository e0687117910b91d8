package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// JWTConfig says which tokens of an issuer are taken.
type JWTConfig struct {
	Issuer, Audience string
	// KeyFile or KeyURL has the issuer's keys as a JSON Web Key Set. A file is read again when it changes, a URL is
	// fetched again every hour and for unknown keys.
	KeyFile, KeyURL string
	// TenantClaim and RolesClaim name the claims with the caller's tenant and its roles, a list or words with spaces
	// between them.
	TenantClaim, RolesClaim string
	Roles                   Roles // of tokens without RolesClaim
	Tenant                  func(string) (int, bool)
	Trouble                 func(error)
}

// signatures are the methods that tokens may be signed by: those with public keys.
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

const (
	// keepVerified is how long the result for a token is kept, and mostVerified of how many: a signature costs more
	// than the rest of a call. A key that the issuer withdraws counts for so long.
	keepVerified = 30 * time.Second
	mostVerified = 4096
	longestToken = 16 << 10
	// refetch is the least time between two fetches of the issuer's keys because a token names an unknown one.
	refetch      = 10 * time.Second
	fetchTimeout = 5 * time.Second
	clockSkew    = 30 * time.Second
)

type tokens struct {
	c      JWTConfig
	parser *jwt.Parser
	keys   func(time.Time) jwt.Keyfunc

	mu   sync.RWMutex
	seen map[[sha256.Size]byte]verified
}

type verified struct {
	caller *Caller
	until  time.Time
}

// JWT returns what knows callers by tokens of an issuer. A URL of keys is fetched until ctx ends.
func JWT(ctx context.Context, c JWTConfig) (Identifier, error) {
	if c.Issuer == "" || c.Audience == "" {
		return nil, errors.New("jwt: issuer and audience are needed: " +
			"a token for another service must not open this one")
	}
	t := &tokens{c: c, seen: make(map[[sha256.Size]byte]verified), parser: jwt.NewParser(
		jwt.WithValidMethods(signatures), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(clockSkew))}
	switch {
	case (c.KeyFile == "") == (c.KeyURL == ""):
		return nil, errors.New("jwt: give one of the file and the URL of the issuer's keys")
	case c.KeyFile != "":
		file, err := Watch(c.KeyFile, c.Trouble, func(b []byte) (jwt.Keyfunc, error) {
			set, err := keyfunc.NewJWKSetJSON(b)
			if err != nil {
				return nil, err
			}
			t.forget()
			return set.Keyfunc, nil
		})
		if err != nil {
			return nil, fmt.Errorf("jwt: %w", err)
		}
		t.keys = file.Get
	default:
		set, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{c.KeyURL}, keyfunc.Override{
			// Strangers can name any number of unknown keys: one fetch in a while, and nobody waits for the next but in
			// the end of that while. The bound must be longer than a busy machine takes to get to the fetch.
			RefreshUnknownKID: rate.NewLimiter(rate.Every(refetch), 1), RateLimitWaitMax: 100 * time.Millisecond,
			HTTPTimeout: fetchTimeout,
			RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
				return func(_ context.Context, err error) {
					if c.Trouble != nil {
						c.Trouble(fmt.Errorf("jwt: the keys at %s: %w", u, err))
					}
				}
			},
		})
		if err != nil {
			return nil, fmt.Errorf("jwt: the keys at %s: %w", c.KeyURL, err)
		}
		t.keys = func(time.Time) jwt.Keyfunc { return set.Keyfunc }
	}
	return t, nil
}

func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.seen)
}

// Identify implements Identifier.
func (t *tokens) Identify(s *Shown, now time.Time) (*Caller, string) {
	secret := s.secret()
	if strings.Count(secret, ".") != 2 || len(secret) > longestToken {
		return nil, ""
	}
	keys := t.keys(now) // before the look at what was verified: new keys make it forget
	sum := sha256.Sum256([]byte(secret))
	t.mu.RLock()
	known, ok := t.seen[sum]
	t.mu.RUnlock()
	if ok && now.Before(known.until) {
		return known.caller, ""
	}
	claims := jwt.MapClaims{}
	token, err := t.parser.ParseWithClaims(secret, claims, keys)
	if err != nil {
		return nil, whyNot(err)
	}
	if _, must := token.Header["crit"]; must { // RFC 7515, section 4.1.11: to be refused by whoever does not know it
		return nil, "the token's header has crit: extensions of tokens are not known here"
	}
	c, why := t.caller(claims)
	if c == nil {
		return nil, why
	}
	until := now.Add(keepVerified)
	if e, err := claims.GetExpirationTime(); err == nil && e != nil && e.Before(until) {
		until = e.Time
	}
	t.mu.Lock()
	if len(t.seen) >= mostVerified {
		clear(t.seen)
	}
	t.seen[sum] = verified{c, until}
	t.mu.Unlock()
	return c, ""
}

// whyNot says what is wrong with a token, without its content.
func whyNot(err error) string {
	for _, x := range []struct {
		is  error
		why string
	}{
		{jwt.ErrTokenExpired, "the token has expired"},
		{jwt.ErrTokenNotValidYet, "the token is not valid yet"},
		{jwt.ErrTokenInvalidIssuer, "the token is of another issuer"},
		{jwt.ErrTokenInvalidAudience, "the token is for another audience"},
		{jwt.ErrTokenRequiredClaimMissing, "the token lacks a claim: exp, iss or aud"},
	} {
		if errors.Is(err, x.is) {
			return x.why
		}
	}
	return "the token's signature is not that of a known key"
}

func (t *tokens) caller(claims jwt.MapClaims) (*Caller, string) {
	c := &Caller{How: byJWT, Roles: t.c.Roles}
	c.Name, _ = claims.GetSubject()
	if checkWord("sub", c.Name) != nil {
		return nil, "the token's claim sub is no name"
	}
	if t.c.TenantClaim != "" {
		name, ok := claims[t.c.TenantClaim].(string)
		if !ok && claims[t.c.TenantClaim] != nil {
			return nil, "the token's claim of the tenant is no text"
		}
		if name != "" {
			if c.Tenant, ok = t.c.Tenant(name); !ok {
				return nil, "the token's tenant is unknown here"
			}
		}
	}
	if t.c.RolesClaim == "" {
		return c, ""
	}
	switch x := claims[t.c.RolesClaim].(type) {
	case string:
		c.Roles = knownRoles(strings.Fields(x))
	case []any:
		var names []string
		for _, v := range x {
			if s, ok := v.(string); ok {
				names = append(names, s)
			}
		}
		c.Roles = knownRoles(names)
	case nil:
	default:
		return nil, "the token's claim of roles is neither a text nor a list"
	}
	return c, ""
}

// knownRoles returns the roles among words that may mean other things to others.
func knownRoles(words []string) (r Roles) {
	for _, w := range words {
		if one, err := ParseRoles([]string{strings.TrimPrefix(w, "sluice:")}); err == nil {
			r |= one
		}
	}
	return r
}
