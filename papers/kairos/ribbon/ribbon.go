// Package ribbon runs the searches of internal/algo/poolsearch on the tables that Ribbon's authors published (SC 2021).
// A table has the price of every pool of three machine types and the share of queries that it serves in time. Kairos
// (§8.3) compares with Ribbon's search.
package ribbon

import (
	"embed"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

// Enough is the share of queries in time from which a pool is good, in per cent.
const Enough = 99

// Table holds all pools of a model. Pools are identified by their index.
type Table struct {
	Model   string
	Types   []string
	Pools   [][]int   // number of machines by type, for every pool
	Price   []float64 // $/h by pool, to the cent
	InTime  []float64 // per cent of the queries, by pool
	Most    float64   // $/h of all machines together
	Savings []float64 // per cent of the best homogeneous pool's price, rising: milestones of a search

	single float64 // $/h of the best homogeneous pool
}

// Tables reads the embedded tables of all models.
func Tables() ([]*Table, error) {
	var out []*Table
	find := func(model string) *Table {
		for _, t := range out {
			if t.Model == model {
				return t
			}
		}
		return nil
	}
	err := read("models.csv", 2, []string{
		"model", "type", "dollars_per_hour", "most", "homogeneous",
	}, func(key []string, v []float64) error {
		t := find(key[0])
		if t == nil {
			t = &Table{Model: key[0]}
			out = append(out, t)
		}
		t.Types = append(t.Types, key[1])
		t.Most += v[0] * v[1]
		t.single += v[0] * v[2]
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = read("savings.csv", 1, []string{"model", "saving_pct"}, func(key []string, v []float64) error {
		t := find(key[0])
		if t == nil {
			return fmt.Errorf("data/savings.csv: model %q is not in data/models.csv", key[0])
		}
		t.Savings = append(t.Savings, v[0])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range out {
		err := read(t.Model+".csv", 0, []string{
			"n1", "n2", "n3", "dollars_per_hour", "in_time_pct",
		}, func(_ []string, v []float64) error {
			t.Pools = append(t.Pools, []int{int(v[0]), int(v[1]), int(v[2])})
			t.Price, t.InTime = append(t.Price, v[3]), append(t.InTime, v[4])
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read calls line for every line of an embedded table, which begins with so many words and continues with numbers.
func read(name string, words int, head []string, line func(key []string, v []float64) error) error {
	rows, err := data.Records(name, head...)
	if err != nil {
		return err
	}
	for n, r := range rows {
		v, err := reproduce.Numbers(name, n, r[words:])
		if err != nil {
			return err
		}
		if err := line(r[:words], v); err != nil {
			return err
		}
	}
	return nil
}

// Good reports whether a pool serves enough queries in time.
func (t *Table) Good(pool int) bool { return t.InTime[pool] >= Enough }

// Score is the objective that Ribbon maximises. For pools that are not good it is below 1/2 and rises with the queries
// in time. For good ones it is between 1/2 and 1 and falls with the price.
func (t *Table) Score(pool int) float64 {
	if !t.Good(pool) {
		return t.InTime[pool] / Enough / 2
	}
	return 1./2 + (1-t.Price[pool]/t.Most)/2
}

// Best returns the cheapest good pool.
func (t *Table) Best() int {
	best := 0
	for i := range t.Pools {
		if t.Score(i) > t.Score(best) {
			best = i
		}
	}
	return best
}

// reaches reports whether a pool is good and saves at least saving per cent. As in the authors' code, the target price
// is rounded to cents first.
func (t *Table) reaches(pool int, saving float64) bool {
	return t.Good(pool) && t.Price[pool] <= math.Round(100*t.single*(1-saving/100))/100+1e-9
}
