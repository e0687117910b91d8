package front

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
)

// Cell is what a fleet's configuration says of a cell.
type Cell struct {
	Apps   []string
	Weight float64 // its share of apps that several cells have, relative to theirs
	// Shares are its parts of such apps by name, where they are known. They count instead of the weight.
	Shares cell.Shares
}

// share is the cell's weight for an app.
func (c *Cell) share(app string) float64 {
	if x := c.Shares[app]; x > 0 {
		return x
	}
	return c.Weight
}

// ParseCell reads the apps of a cell from its sluice.yaml.
func ParseCell(config string, weight float64) (Cell, error) {
	var f struct {
		Apps []struct {
			Name string `yaml:"name"`
		} `yaml:"apps"`
	}
	if err := yaml.Unmarshal([]byte(config), &f); err != nil {
		return Cell{}, fmt.Errorf("sluice.yaml: %w", err)
	}
	c := Cell{Weight: weight}
	for _, a := range f.Apps {
		c.Apps = append(c.Apps, a.Name)
	}
	return c, nil
}

// Table says where the cells of a fleet are served. Reads take no lock.
type Table struct {
	me string

	mu      sync.Mutex
	cells   map[int]Cell
	holders map[int]cells.Holder
	known   [2]bool // cells, holders

	view atomic.Pointer[view]
}

// view is the state of a table at one moment. It does not change.
type view struct {
	known   bool
	places  map[int]place
	keys    map[string]string  // of the replicas that hold cells, by their addresses
	apps    map[string][]place // by name; where an app is given to several cells, with their weights
	changed chan struct{}      // closed when there is a newer view
}

// place is a cell and who serves it.
type place struct {
	cell   int
	holder cells.Holder
	mine   bool
	weight float64
}

// NewTable returns a table that knows nothing. me is this process's identity.
func NewTable(me string) *Table {
	t := &Table{me: me}
	t.view.Store(&view{changed: make(chan struct{})})
	return t
}

// SetCells says which cells there are.
func (t *Table) SetCells(list map[int]Cell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells, t.known[0] = maps.Clone(list), true
	t.rebuild()
}

// SetHolders says who holds the cells.
func (t *Table) SetHolders(h map[int]cells.Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holders, t.known[1] = maps.Clone(h), true
	t.rebuild()
}

// Touch wakes the queries that wait, for instance because a cell of this process has become ready.
func (t *Table) Touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rebuild()
}

// rebuild makes a new view. mu is held.
func (t *Table) rebuild() {
	v := &view{known: t.known[0] && t.known[1], places: make(map[int]place, len(t.cells)),
		keys: make(map[string]string), apps: make(map[string][]place), changed: make(chan struct{})}
	for _, n := range slices.Sorted(maps.Keys(t.cells)) {
		c := t.cells[n]
		h := t.holders[n]
		p := place{n, h, h.Identity == t.me && t.me != "", c.Weight}
		v.places[n] = p
		v.keys[h.HTTP], v.keys[h.GRPC] = h.Key, h.Key
		for _, a := range c.Apps {
			p.weight = c.share(a)
			v.apps[a] = append(v.apps[a], p)
		}
	}
	close(t.view.Swap(v).changed)
}

// Known reports whether the table knows the cells and their holders.
func (t *Table) Known() bool { return t.view.Load().known }

// Complete reports whether every cell has a holder.
func (t *Table) Complete() bool {
	v := t.view.Load()
	for _, p := range v.places {
		if p.holder.Identity == "" {
			return false
		}
	}
	return v.known
}

// pick chooses the cell of a query: by weight among those that somebody holds, or any where nobody holds one.
func pick(list []place) place {
	if len(list) == 1 {
		return list[0]
	}
	total := 0.0
	for k := range list {
		if list[k].holder.Identity != "" {
			total += list[k].weight
		}
	}
	x := rand.Float64() * total
	for k := range list {
		if list[k].holder.Identity == "" {
			continue
		}
		if x -= list[k].weight; x < 0 {
			return list[k]
		}
	}
	return list[len(list)-1]
}
