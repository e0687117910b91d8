package reproduce

import (
	"context"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/workload"
)

// RunLive sends the arrivals of source to a data plane on the real clock, at their times after the start. The start is
// the moment when every instance of the first plan is ready and warm. RunLive returns when all queries have ended. Its
// error is the first trouble that the data plane reports. It sets c.Trouble.
func RunLive(ctx context.Context, c dataplane.Config, source workload.Source) error {
	trouble := make(chan error, 1)
	c.Trouble = func(err error) {
		select {
		case trouble <- err:
		default:
		}
	}
	plane, err := dataplane.New(c)
	if err != nil {
		return err
	}
	defer plane.Close()
	if err := waitReady(ctx, plane, len(c.Initial.Instances)); err != nil {
		return err
	}
	begun := plane.Now()
	for {
		a, more := source.Next()
		if !more {
			break
		}
		if err := sleepUntil(ctx, plane, begun+a.At); err != nil {
			return err
		}
		plane.Submit(&dataplane.Request{
			App: a.App, Items: int(a.Items), Variant: a.Variant,
		}, func(*dataplane.Response, error) {})
	}
	if err := plane.Drain(ctx); err != nil {
		return err
	}
	select {
	case err := <-trouble:
		return err
	default:
		return nil
	}
}

// waitReady waits until exactly want instances are ready and warm.
func waitReady(ctx context.Context, p *dataplane.Plane, want int) error {
	for {
		n := 0
		p.Inspect(func(e *engine.Engine) {
			for _, i := range e.Fleet().Live() {
				warm := i.State() == fleet.Ready
				for k := range i.Variants() {
					warm = warm && i.Variant(k).Warm
				}
				if warm {
					n++
				}
			}
		})
		if n == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sleepUntil sleeps until the plane's clock shows at. It returns at once when that time has passed: a late client sends
// late, and its query arrives when it is sent.
func sleepUntil(ctx context.Context, p *dataplane.Plane, at serving.Time) error {
	wait := at.Sub(p.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
