package worlds

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/sim/bounds"
	"github.com/sluice-serving/sluice/measure/bound"
	"github.com/sluice-serving/sluice/systems"
)

var _ = bounds.Fluid
var _ bound.Options

func TestZZOne(t *testing.T) {
	s := highstest.Solver(t)
	for _, w := range strings.Split(os.Getenv("WORLDS"), ",") {
		var seed uint64
		var n int
		fmt.Sscanf(w, "%d-%d", &seed, &n)
		p, refused, err := open(seed, n)
		if err != nil || refused != "" {
			t.Fatal(err, refused)
		}
		if os.Getenv("SHOW") != "" {
			fmt.Println(p.ConfigFile())
		}
		most, err := p.limit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s %s bound %.4f in time %.4f\n", w, p.TraitList(), most.utility, most.inTime)
		names := strings.Split(os.Getenv("SYS"), ",")
		if os.Getenv("SYS") == "" {
			names = names[:0]
			for _, x := range quickened() {
				names = append(names, x.Name)
			}
		}
		for _, name := range names {
			var sys systems.System
			for _, x := range quickened() {
				if x.Name == name {
					sys = x
				}
			}
			if sys.Name == "" {
				sys, err = systems.Get(name)
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, slow := range []string{"ramsis", "tidal", "modelswitching"} {
				if strings.HasPrefix(name, slow) {
					sys.Name = ""
				}
			}
			if sys.Name == "" {
				continue
			}
			x, err := p.run(t.Context(), sys, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("  %-28s %.1f%% of bound, in time %.3f late %.3f %s\n", name, 100*share(x, most), x.inTime, x.late, x.refused)
		}
	}
}
