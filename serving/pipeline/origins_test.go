package pipeline_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving/pipeline"
)

// A detector finds 3 boxes in a picture of 3 rows. A cutter gets boxes as items, and a reader what was cut out.
func TestRowsAreItems(t *testing.T) {
	g := graphOf(4, edge{from: 0, to: 1, fanOut: 2, rows: "boxes"}, one(1, 2), one(0, 3))
	var p pipeline.Progress
	p.Start(g, 1)
	p.Served(0, 1, []int32{3, 1}, nil)
	p.Served(1, 3, []int32{3}, nil)
	for _, c := range []struct {
		what     string
		at, from int
		rows     int64
		want     bool
	}{
		{"the request's rows, at the first stage", 0, pipeline.Request, 1, true},
		{"more rows of the request", 0, pipeline.Request, 3, false},
		{"a picture of as many rows as there are boxes", 1, pipeline.Request, 3, false},
		{"boxes", 1, 0, 3, true},
		{"something of one row that the detector gives", 1, 0, 1, false},
		{"patches of the cutter", 2, 1, 3, true},
		{"boxes, one stage further on", 2, 0, 3, true},
		{"one row for all patches", 2, 1, 1, false},
		{"the request's row, where the detector hands items on as they are", 3, pipeline.Request, 1, true},
		{"the detector's row there", 3, 0, 1, true},
		{"boxes there", 3, 0, 3, false},
	} {
		if got := p.RowsAreItems(c.at, c.from, c.rows); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// origin is what the items of a stage are rows of: rows named so of a stage, or the request's where from is Request.
type origin struct {
	from int
	rows string
}

// originsOf follows all edges back from a stage, as far as items stay the same.
func originsOf(edges []edge, at int) (out []origin) {
	if at == 0 {
		return []origin{{from: pipeline.Request}}
	}
	for _, e := range edges {
		switch {
		case e.to != at:
		case e.rows != "":
			out = append(out, origin{e.from, e.rows})
		default:
			out = append(out, originsOf(edges, e.from)...)
		}
	}
	return out
}

// Random graphs: rows are items where they are as many, and where both come from the same rows, however far back.
func TestRowsAreItemsOfRandomGraphs(t *testing.T) {
	found := 0
	for seed := uint64(1); seed <= 1000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 2 + rng.IntN(6)
		edges := randomEdges(rng, n)
		g := graphOf(n, edges...)
		var p pipeline.Progress
		p.Start(g, 1+rng.Int32N(3))
		sent := map[origin]int32{{from: pipeline.Request}: p.Items(0)} // rows of tensors whose rows go along edges
		for ready := []int{0}; len(ready) > 0; ready = ready[1:] {
			at := ready[0]
			rows := map[string]int32{"": p.Items(at)}
			var along []int32
			for _, e := range g.Next(at) {
				if _, drawn := rows[e.Rows]; !drawn {
					rows[e.Rows] = rng.Int32N(4)
				}
				sent[origin{at, e.Rows}] = rows[e.Rows]
				along = append(along, rows[e.Rows])
			}
			for _, c := range p.Served(at, p.Items(at), along, nil) {
				switch c.Kind {
				case pipeline.Ready:
					ready = append(ready, c.Stage)
				case pipeline.PassedOver: // it sends no rows of anything
					for _, e := range g.Next(c.Stage) {
						sent[origin{c.Stage, e.Rows}] = 0
					}
				}
			}
		}
		for at := range n {
			for from := pipeline.Request; from < at; from++ {
				for rows := range int32(5) {
					here := originsOf(edges, at)
					want := false
					for _, o := range here {
						if rows != p.Items(at) {
							continue
						}
						switch {
						case from == pipeline.Request || o.from == from: // the rows are an origin
							want = want || o.from == from && sent[o] == rows
						default: // the rows are the items of from, which have the same origin
							want = want || p.Items(from) == rows && slices.Contains(originsOf(edges, from), o)
						}
					}
					if got := p.RowsAreItems(at, from, int64(rows)); got != want {
						t.Fatalf("seed %d: %+v: %d rows of stage %d at stage %d with %d items: %v, want %v", seed,
							edges, rows, from, at, p.Items(at), got, want)
					}
					if want {
						found++
					}
				}
			}
		}
	}
	if found < 2000 {
		t.Errorf("%d tensors whose rows are items: too few to tell", found)
	}
}
