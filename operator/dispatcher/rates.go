package dispatcher

import (
	"cmp"
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

type ownerReference = metav1.OwnerReference

// before returns what was seen of a cell by whoever served it, as statuses have it.
func (d *Dispatcher) before(ctx context.Context, number int, machines string) runner.Before {
	return runner.Before{Rates: d.rates(ctx, number), Starts: d.starts(ctx, machines)}
}

// starts returns how long machines of a cell's types took to come, as the status of the types has it.
func (d *Dispatcher) starts(ctx context.Context, machines string) map[string]time.Duration {
	limit, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	out := make(map[string]time.Duration)
	m, err := cell.Decode(cmp.Or(machines, "{}"))
	if err != nil {
		return out // who opens the machines says so
	}
	for name := range m.Types {
		var t v1alpha1.MachineType
		if err := d.api.Get(limit, client.ObjectKey{Namespace: d.o.Namespace, Name: name}, &t); err != nil {
			if limit.Err() != nil {
				break
			}
			continue
		}
		if s := t.Status.StartTime; s != nil {
			out[name] = s.Duration
		}
	}
	return out
}

// rates returns the queries/s that the last replica that served a cell has seen, as the status of its apps has them.
func (d *Dispatcher) rates(ctx context.Context, cell int) map[string]float64 {
	limit, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	out := make(map[string]float64)
	for _, app := range d.configs.apps(cell) {
		var a v1alpha1.InferenceApp
		if err := d.api.Get(limit, client.ObjectKey{Namespace: d.o.Namespace, Name: app}, &a); err != nil {
			if limit.Err() != nil {
				break
			}
			continue
		}
		// Without queries what is expected counts.
		if x, err := strconv.ParseFloat(a.Status.Rate, 64); err == nil && x > 0 {
			out[app] = x * d.configs.share(cell, app)
		}
	}
	return out
}
