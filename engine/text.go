package engine

import (
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// String prints a decision on one line, as journals record it and people read it. Two decisions are equal exactly when
// their strings are.
func (d *Decision) String() string {
	var b strings.Builder
	b.WriteString(d.Kind.String())
	switch d.Kind {
	case StartBatch:
		fmt.Fprintf(&b, " b%d on i%d variant %d, %d items, expected %v:", d.Batch, d.Instance, d.Variant, d.Items,
			d.Expected)
		for _, p := range d.Tasks {
			fmt.Fprintf(&b, " q%d", p.Query)
			if p.Items != 1 || p.Offset != 0 {
				fmt.Fprintf(&b, "[%d+%d]", p.Offset, p.Items)
			}
		}
	case EndQuery:
		fmt.Fprintf(&b, " q%d %s", d.Query, d.Outcome)
		if d.Outcome == serving.Served {
			fmt.Fprintf(&b, " by b%d on i%d variant %d, waited %v", d.Batch, d.Instance, d.Variant, d.Queue)
			if d.Late {
				b.WriteString(", late")
			}
		} else if d.Retry {
			b.WriteString(", may be tried again")
		}
	case LaunchInstance:
		fmt.Fprintf(&b, " i%d worker %d.%d stage %d variants %v limit %d slots %d", d.Instance, d.Launch.Key.Worker,
			d.Launch.Key.Ordinal, d.Launch.Stage, d.Launch.Variants, d.Launch.BatchLimit, d.Launch.Slots)
		if d.Launch.Part > 0 {
			fmt.Fprintf(&b, " part %d", d.Launch.Part-1)
		}
	case StopInstance, KeepInstance, ResumeInstance:
		fmt.Fprintf(&b, " i%d", d.Instance)
	case DoubtConfidence:
		fmt.Fprintf(&b, " of variant %d", d.Variant)
	case LoadVariant, UnloadVariant:
		fmt.Fprintf(&b, " i%d variant %d", d.Instance, d.Variant)
	case RequestPlan:
		writeRequest(&b, d.Request)
	case LimitBatch:
		fmt.Fprintf(&b, " of variant %d on device type %d to %d items", d.Variant, d.DeviceType, d.Items)
	case KeepPlan:
		fmt.Fprintf(&b, " no #%d: %s", d.Failure.Seq, strings.ReplaceAll(d.Failure.Err, "\n", "; "))
	}
	fmt.Fprintf(&b, " (%s)", d.Reason)
	return b.String()
}

// Why returns the reason in words for the client of a query that was not served.
func (d *Decision) Why() string {
	if d.Reason == TooLong {
		return fmt.Sprintf("length %d: the longest that can be answered in %v is %d", d.Length,
			d.Deadline.Sub(d.Arrived), d.Longest)
	}
	return d.Reason.String()
}

// writeRequest prints what a plan is asked for.
func writeRequest(b *strings.Builder, r *plan.Request) {
	fmt.Fprintf(b, " #%d rates %v", r.Snapshot.Seq, r.Rates)
	for a := range r.Mixes {
		if m := &r.Mixes[a]; m.Largest() > 1 {
			fmt.Fprintf(b, ", app %d brings %g items in the mean of %d", a, m.Mean(), m.Count)
		}
	}
	if r.Prices != nil {
		fmt.Fprintf(b, ", prices %v", r.Prices)
	}
	if r.FanOuts != nil {
		fmt.Fprintf(b, ", fan-outs %v", r.FanOuts)
	}
	if r.Ballooning != nil {
		fmt.Fprintf(b, ", ballooning %v", r.Ballooning)
	}
}
