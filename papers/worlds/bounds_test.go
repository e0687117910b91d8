package worlds

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
)

// The programs of worlds with lengths are solved: presolve never ended in one of them. And what the least rent is does
// not depend on the unit of money: costs that are small beside the solver's tolerances made it too high by 0.6 %.
func TestBoundsOfLengths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	least := func(number int, unit float64) float64 {
		p, refused, err := open(1, worlds.WithLengths+number)
		if err != nil || refused != "" {
			t.Fatal(err, refused)
		}
		for d := range p.Spec.DeviceTypes {
			p.Spec.DeviceTypes[d].PricePerHour *= unit
		}
		x, err := p.limit(ctx, highstest.Solver(t))
		if err != nil || x.utility < 0.9 || x.utility > 1 {
			t.Fatal(err, x)
		}
		return x.cost
	}
	least(9, 1)
	cents, kilo := least(13, 1), least(13, 1000)
	if math.Abs(kilo/cents-1000) > 1e-3 {
		t.Errorf("the least rent is %v, and %v at a thousand times the prices", cents, kilo)
	}
}
