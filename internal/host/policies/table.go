package policies

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Table is a policy with the choice of every state.
type Table struct {
	Policy
	// From and To are the rates between which the policy is in force; nil To has no end.
	From     float64   `json:"from"`
	To       *float64  `json:"to,omitempty"`
	SLOMS    float64   `json:"slo_ms"`
	Variants []Variant `json:"variants"` // that the policy uses, the least accurate first
	Rows     []Row     `json:"rows"`     // by length of the queue
}

// Variant is a variant that a policy uses.
type Variant struct {
	Name     string  `json:"name"`
	Accuracy float64 `json:"accuracy"`
}

// Row is the choices for one length of the queue.
type Row struct {
	Queue int   `json:"queue"` // queries
	Runs  []Run `json:"runs"`
}

// Run is a range of slack with the same choice.
type Run struct {
	FromMS  float64 `json:"from_ms"` // to the first deadline
	ToMS    float64 `json:"to_ms"`   // the next run begins there; the last one has no end
	Variant string  `json:"variant"`
	Queries int     `json:"queries"`

	Last bool `json:"-"`
	At   int  `json:"-"` // index of the variant in Table.Variants
}

// Tables returns the policies in force when queries of an app arrive at a rate, one for each type of worker. An empty
// app or workerType means any. An error is of kind fault.Usage when there are none.
func (s *Sets) Tables(app, workerType string, rate float64) ([]Table, error) {
	sets, err := s.of(app, workerType)
	if err != nil {
		return nil, err
	}
	var out []Table
	for _, set := range sets {
		out = append(out, s.table(set, rate))
	}
	return out, nil
}

func (s *Sets) table(set *plan.Policies, rate float64) Table {
	p := set.At(rate)
	out := Table{
		Policy: s.describe(set, p), SLOMS: quantity.Milliseconds(s.profiled.Spec().Apps[s.app(set)].SLO.Latency),
	}
	for i := range set.ByRate {
		if set.ByRate[i].Rate < p.Rate {
			out.From = set.ByRate[i].Rate
		}
	}
	if p.Rate < set.ByRate[len(set.ByRate)-1].Rate {
		out.To = &p.Rate
	}
	order := s.usedVariants(p, &out)
	for row := range slices.Chunk(p.Choices, len(p.Slacks)) {
		out.Rows = append(out.Rows, Row{Queue: len(out.Rows) + 1, Runs: out.runs(p.Slacks, row, order)})
	}
	return out
}

// usedVariants adds the variants that a policy uses to a table and returns their indices in Table.Variants.
func (s *Sets) usedVariants(p *plan.Policy, out *Table) map[serving.VariantID]int {
	spec := s.profiled.Spec()
	var used []serving.VariantID
	for _, c := range p.Choices {
		if !slices.Contains(used, c.Variant) {
			used = append(used, c.Variant)
		}
	}
	slices.SortFunc(used, func(a, b serving.VariantID) int {
		return cmp.Or(cmp.Compare(spec.Variants[a].Accuracy, spec.Variants[b].Accuracy), cmp.Compare(a, b))
	})
	order := make(map[serving.VariantID]int)
	for at, v := range used {
		order[v] = at
		out.Variants = append(out.Variants, Variant{spec.Variants[v].Name, spec.Variants[v].Accuracy})
	}
	return order
}

// runs joins neighbouring slacks with the same choice.
func (t *Table) runs(slacks []time.Duration, row []plan.Choice, order map[serving.VariantID]int) (out []Run) {
	n := len(row)
	for from := 0; from < n; {
		c, to := row[from], from+1
		for to < n && row[to] == c {
			to++
		}
		run := Run{
			FromMS: quantity.Milliseconds(slacks[from]), ToMS: quantity.Milliseconds(slacks[min(to, n-1)]),
			Variant: t.Variants[order[c.Variant]].Name, Queries: int(c.Queries), Last: to == n, At: order[c.Variant],
		}
		out = append(out, run)
		from = to
	}
	return out
}
