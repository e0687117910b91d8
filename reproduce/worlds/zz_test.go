package worlds

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/measure/worlds"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

func TestZZ(t *testing.T) {
	s := highstest.Solver(t)
	sys, err := systems.Get(os.Getenv("SYS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seedText := range strings.Split(os.Getenv("SEEDS"), ",") {
		var seed uint64
		fmt.Sscan(seedText, &seed)
		type row struct {
			n        int
			share    float64
			traits   string
			why      string
			cost     float64
			late, in float64
		}
		rows := make([]row, count)
		var mu sync.Mutex
		err = experiment.Sweep(context.Background(), count, 2, nil, func(ctx context.Context, k int) error {
			p, refused, err := open(seed, k)
			if err != nil {
				return err
			}
			r := row{n: k, traits: p.TraitList(), why: refused}
			if refused == "" {
				most, err := p.limit(ctx, s)
				if err != nil {
					return err
				}
				x, err := p.run(ctx, sys, s, nil)
				if err != nil {
					return err
				}
				r.share, r.why, r.late, r.in = share(x, most), x.refused, x.late, x.inTime
				r.cost = x.cost / most.cost
				if exceeds(x, most) {
					r.why = "EXCEEDS"
				}
			}
			mu.Lock()
			rows[k] = r
			mu.Unlock()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]float64{}
		n := map[string]float64{}
		for _, r := range rows {
			kind := "below"
			if strings.Contains(r.traits, string(worlds.Rent)) {
				kind = "rent"
			} else if strings.Contains(r.traits, string(worlds.Overload)) {
				kind = "beyond"
			}
			sum[kind] += r.share
			n[kind]++
			if r.why != "" {
				fmt.Printf("seed %d world %d %s: %s\n", seed, r.n, r.traits, r.why)
			}
		}
		fmt.Printf("seed %d:", seed)
		for _, k := range []string{"below", "beyond", "rent"} {
			fmt.Printf(" %s %.2f", k, 100*sum[k]/n[k])
		}
		sort.Slice(rows, func(a, b int) bool { return rows[a].share < rows[b].share })
		fmt.Print(" worst:")
		for _, r := range rows[:5] {
			fmt.Printf(" %d:%.0f(%s)", r.n, 100*r.share, r.traits)
		}
		fmt.Println()
	}
}
