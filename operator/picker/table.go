package picker

import (
	"errors"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports of workers and dispatchers.
const (
	PortHTTP = 8000
	PortGRPC = 8001
)

// Why nothing was picked.
var (
	ErrNone = errors.New("no endpoint of the pool is ready for this request")
	ErrBusy = errors.New("all endpoints have as many requests under way as they may: try again")
)

// Endpoint is a pod that answers.
type Endpoint struct {
	Address string       // IP
	under   atomic.Int64 // requests that were sent there and have not ended
}

// Under is how many requests are under way there that this picker knows of.
func (e *Endpoint) Under() int64 { return e.under.Load() }

// Choice is an endpoint that serves an app, with the model that is loaded there.
type Choice struct {
	*Endpoint
	Model string  // empty leaves the request's
	Share float64 // of the app's requests, > 0
}

// Table says who serves what. It does not change once it is in use; the endpoints' counters do.
type Table struct {
	Apps        map[string][]Choice
	Dispatchers []Choice
	// Most is how many requests an endpoint of an app may have under way; 0 for no bound.
	Most int64

	turn atomic.Uint32
}

// Picked is where a request goes.
type Picked struct {
	Choice
	Port int
	// Fallbacks serve the same model, in the order in which they are to be tried.
	Fallbacks []*Endpoint
	ended     bool
}

// fallbacks is the largest number of fallbacks.
const fallbacks = 2

// Value is what the gateway is told: IP:PORT, and those of the fallbacks after commas.
func (p *Picked) Value() string {
	port := strconv.Itoa(p.Port)
	out := net.JoinHostPort(p.Address, port)
	for _, f := range p.Fallbacks {
		out += "," + net.JoinHostPort(f.Address, port)
	}
	return out
}

// Pick chooses an endpoint for a request of an app, empty for a request that is about no app. It counts the request as
// under way there, until Done. allowed is the gateway's subset; nil allows all. The error is ErrNone or ErrBusy.
func (t *Table) Pick(app string, port int, allowed *Subset) (Picked, error) {
	list, most := t.Apps[app], t.Most
	best, busy := t.least(list, port, allowed, most)
	if best < 0 && !busy {
		// No worker has it, or none that the gateway allows.
		list, most = t.Dispatchers, 0
		best, _ = t.least(list, port, allowed, most)
	}
	switch {
	case best < 0 && busy:
		return Picked{}, ErrBusy
	case best < 0:
		return Picked{}, ErrNone
	}
	out := Picked{Choice: list[best], Port: port}
	out.under.Add(1)
	for i := 1; i < len(list) && len(out.Fallbacks) < fallbacks; i++ {
		c := &list[(best+i)%len(list)]
		if c.Model == out.Model && c.Address != out.Address && allowed.has(c.Address, port) {
			out.Fallbacks = append(out.Fallbacks, c.Endpoint)
		}
	}
	return out, nil
}

// least returns the choice with the fewest requests for its share, -1 for none; busy says that only the bound kept any
// from being chosen. Equal ones take turns.
func (t *Table) least(list []Choice, port int, allowed *Subset, most int64) (best int, busy bool) {
	best = -1
	if len(list) == 0 {
		return best, false
	}
	first, lowest := int(t.turn.Add(1))%len(list), 0.0
	for i := range list {
		at := (first + i) % len(list)
		c := &list[at]
		if !allowed.has(c.Address, port) {
			continue
		}
		n := c.under.Load()
		if most > 0 && n >= most {
			busy = true
			continue
		}
		if load := float64(n+1) / c.Share; best < 0 || load < lowest {
			best, lowest = at, load
		}
	}
	return best, busy && best < 0
}

// Done says that a request has ended.
func (p *Picked) Done() { p.under.Add(-1) }

// Moved says which of the endpoints served the request after all.
func (p *Picked) Moved(served string) {
	host, _, err := net.SplitHostPort(served)
	if err != nil || host == p.Address {
		return
	}
	for _, f := range p.Fallbacks {
		if f.Address == host {
			p.under.Add(-1)
			f.under.Add(1)
			p.Endpoint = f
			return
		}
	}
}

// Subset is the endpoints that a gateway allows. Nil allows all, an empty one none.
type Subset struct {
	whole map[string]bool // IP: any port
	ports map[string]bool // IP:PORT
}

func (s *Subset) has(address string, port int) bool {
	return s == nil || s.whole[address] || s.ports[net.JoinHostPort(address, strconv.Itoa(port))]
}

// add takes IP or IP:PORT. Anything else allows nothing.
func (s *Subset) add(endpoint string) {
	if host, port, err := net.SplitHostPort(endpoint); err == nil {
		s.ports[net.JoinHostPort(host, port)] = true
	} else if net.ParseIP(endpoint) != nil {
		s.whole[endpoint] = true
	}
}
