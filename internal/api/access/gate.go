package access

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Reason says why a caller was refused.
type Reason uint8

// The reasons.
const (
	Admitted        Reason = iota
	Unauthenticated        // it has not shown who it is, or what it showed is wrong
	Forbidden              // it lacks the role
	TooFast                // beyond its tenant's rate
	TooManyAtOnce          // beyond its tenant's concurrency
	TooMuchWork            // beyond its tenant's work
	TooManyPlaces          // few connections are left, and its tenant holds more than its part
	reasons
)

var reasonNames = [reasons]string{"admitted", "unauthenticated", "forbidden", "rate", "concurrency",
	"work", "connections"}

// String returns the reason's name in metrics.
func (r Reason) String() string { return reasonNames[r] }

// Error is a refusal.
type Error struct {
	Reason Reason
	Text   string        // for the caller
	Retry  time.Duration // after which the same call would be admitted; 0 where waiting does not help
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Config is what a gate is made of.
type Config struct {
	// Identifiers are asked in their order.
	Identifiers []Identifier
	// Open is what callers may do who show nothing.
	Open Roles
	// Strict refuses callers who show what nobody knows, also where those who show nothing may do the same.
	Strict bool
	// Tenants are in the order of their numbers, from 1. Callers without a tenant have that named DefaultTenant, if
	// there is one.
	Tenants []Tenant
}

// DefaultTenant is the name of the tenant of callers who have none.
const DefaultTenant = "default"

// Gate says who may do what. Its methods may be called from many goroutines at once.
type Gate struct {
	c         Config
	anonymous Caller
	tenants   []*tenant // by number; the first has no limits
	fallback  int
	counts    [][reasons]atomic.Uint64 // by tenant
}

// New returns a gate.
func New(c Config) *Gate {
	g := &Gate{c: c, tenants: []*tenant{{Tenant: Tenant{Priority: 1}}}}
	for k, t := range c.Tenants {
		g.tenants = append(g.tenants, newTenant(t))
		if t.Name == DefaultTenant {
			g.fallback = k + 1
		}
	}
	g.counts = make([][reasons]atomic.Uint64, len(g.tenants))
	g.anonymous = Caller{Name: "anonymous", How: byNothing, Tenant: g.fallback, Roles: c.Open}
	return g
}

// TenantNumber returns the number of a tenant, and false for an unknown one.
func TenantNumber(tenants []Tenant) func(string) (int, bool) {
	byName := make(map[string]int, len(tenants))
	for k, t := range tenants {
		byName[t.Name] = k + 1
	}
	return func(name string) (int, bool) {
		n, ok := byName[name]
		return n, ok
	}
}

// Strict reports whether callers have to say who they are.
func (g *Gate) Strict() bool { return g.c.Strict }

// Open returns what callers may do who show nothing.
func (g *Gate) Open() Roles { return g.c.Open }

// Enter returns who calls if it has the roles, or an *Error. A nil caller is never returned without an error.
func (g *Gate) Enter(s *Shown, need Roles) (*Caller, error) {
	return g.enter(s, need, g.anonymous.Roles)
}

// EnterFrom is Enter where those who show nothing may do something else, as on the address of administration.
func (g *Gate) EnterFrom(s *Shown, need, open Roles) (*Caller, error) { return g.enter(s, need, open) }

func (g *Gate) enter(s *Shown, need, open Roles) (*Caller, error) {
	if s.Authorization == "" && s.Key == "" && s.Certificate == nil {
		return g.open(need, open, "")
	}
	now, why := time.Now(), ""
	for _, x := range g.c.Identifiers {
		c, wrong := x.Identify(s, now)
		if c == nil {
			if wrong != "" {
				why = wrong
			}
			continue
		}
		if c.Tenant == 0 && g.fallback != 0 {
			own := *c
			own.Tenant = g.fallback
			c = &own
		}
		if !c.May(need) {
			g.counts[c.Tenant][Forbidden].Add(1)
			return nil, &Error{
				Reason: Forbidden, Text: fmt.Sprintf("%s may %s, and this needs %s", c.Name, c.Roles, need),
			}
		}
		return c, nil
	}
	if g.c.Strict && (s.Authorization != "" || s.Key != "") {
		if why == "" {
			why = "the key or token is unknown"
		}
		g.counts[g.fallback][Unauthenticated].Add(1)
		return nil, &Error{Reason: Unauthenticated, Text: why}
	}
	return g.open(need, open, why)
}

func (g *Gate) open(need, open Roles, why string) (*Caller, error) {
	if open&need == need {
		if open == g.anonymous.Roles {
			return &g.anonymous, nil
		}
		c := g.anonymous
		c.Roles = open
		return &c, nil
	}
	g.counts[g.fallback][Unauthenticated].Add(1)
	if why == "" {
		why = "this needs a caller with the role " + need.String() + ": send Authorization: Bearer KEY, or " +
			"X-API-Key: KEY"
	}
	return nil, &Error{Reason: Unauthenticated, Text: why}
}

// Tenant returns the limits of a caller's tenant.
func (g *Gate) Tenant(c *Caller) *Tenant { return &g.tenants[c.Tenant].Tenant }

// Admit takes a query of a caller in, or returns an *Error. leave must be called once when the query has ended; it is
// nil with an error.
func (g *Gate) Admit(c *Caller) (q Quota, leave func(), err error) {
	t := g.tenants[c.Tenant]
	if c.Tenant == 0 {
		g.counts[0][Admitted].Add(1)
		return Quota{}, nothing, nil
	}
	now := time.Now()
	why, retry := t.admit(now)
	g.counts[c.Tenant][why].Add(1)
	if why != Admitted {
		text := fmt.Sprintf("tenant %s sends more than %g queries/s, %d at once", t.Name, t.Rate, t.Burst)
		if why == TooManyAtOnce {
			text = fmt.Sprintf("tenant %s has %d queries under way, which is its most", t.Name, t.Concurrency)
		}
		return t.quota(now), nil, &Error{Reason: why, Text: text, Retry: retry}
	}
	return t.quota(now), t.left, nil
}

// Spend counts the work of an admitted query of a caller, in items times length, or returns an *Error.
func (g *Gate) Spend(c *Caller, work float64) error {
	t := g.tenants[c.Tenant]
	if t.Work <= 0 {
		return nil
	}
	retry := t.spend(time.Now(), work)
	if retry == 0 {
		return nil
	}
	g.counts[c.Tenant][TooMuchWork].Add(1)
	return &Error{Reason: TooMuchWork, Retry: retry, Text: fmt.Sprintf("tenant %s sends more than %g items times "+
		"length in a second", t.Name, t.Work)}
}

// Crowds returns the refusal of a caller whose tenant holds more than its part of the connections.
func (g *Gate) Crowds(c *Caller) error {
	g.counts[c.Tenant][TooManyPlaces].Add(1)
	name := g.tenants[c.Tenant].Name
	if name == "" {
		name = "of callers without one"
	}
	return &Error{Reason: TooManyPlaces, Retry: busyRetry, Text: fmt.Sprintf("tenant %s holds more than its part of "+
		"the connections or of the calls on one, and few are left (server.limits.connections, "+
		"connections_per_address, streams)", name)}
}

func nothing() {}

// Count is how many calls of a tenant were admitted, or refused for a reason. Tenant is "" for callers without one.
type Count struct {
	Tenant, Reason string
	Count          uint64
}

// Counts returns the counts so far, but for those that are 0.
func (g *Gate) Counts() (out []Count) {
	for k := range g.counts {
		for r := range reasons {
			if n := g.counts[k][r].Load(); n > 0 {
				out = append(out, Count{g.tenants[k].Name, r.String(), n})
			}
		}
	}
	return out
}

// Load is the state of a tenant's limits.
type Load struct {
	Tenant string
	Active int64 // queries under way
	Quota
}

// Loads returns the state of every tenant.
func (g *Gate) Loads() (out []Load) {
	now := time.Now()
	for _, t := range g.tenants[1:] {
		out = append(out, Load{t.Name, t.active.Load(), t.quota(now)})
	}
	return out
}
