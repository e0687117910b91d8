package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/host/planning"
	"github.com/sluice-serving/sluice/measure/quantity"
)

// maxShown is the number of bottlenecks that are listed. The others matter little.
const maxShown = 4

// printDiagnosis writes why a demand cannot be carried, and the changes with which it could be.
func printDiagnosis(w io.Writer, v *planning.Plan) error {
	d := v.Diagnosis
	if d == nil || !v.FallsShort() && d.Carried {
		return nil
	}
	b := &strings.Builder{}
	by := ""
	if v.Adviser != "" {
		by = fmt.Sprintf(", with planner %s, which may put any variant on any worker,", v.Adviser)
	}
	head := ""
	if d.Headroom > 1 {
		head = fmt.Sprintf(", with %s head-room", quantity.Percent(d.Headroom-1))
	}
	switch {
	case d.Carried:
		fmt.Fprintf(b, "The fleet%s would carry this demand up to %s; system %s does not.\n", by,
			quantity.Multiple(d.Multiple), v.System)
	case len(d.Unserved) > 0:
		fmt.Fprintf(b, "This demand cannot be carried%s: there are apps that nothing serves.\n",
			strings.TrimSuffix(by, ","))
	case !v.FallsShort() && len(v.MissedTargets()) > 0:
		fmt.Fprintf(b, "This demand is carried, but not at every accuracy_target: at them, %s can be.\n",
			quantity.Multiple(d.Multiple))
	case !v.FallsShort():
		fmt.Fprintf(b,
			"This demand is carried, but not with the head-room of %s that is planned for: with it, %s can be.\n",
			quantity.Percent(d.Headroom-1), quantity.Multiple(d.Multiple))
	default:
		fmt.Fprintf(b,
			"This demand cannot be carried: the fleet%s carries %s of it at most, if every app is to get the same "+
				"part%s.\n", by, quantity.Multiple(d.Multiple), head)
	}
	if !d.Carried && d.Bound > d.Multiple*1.005 {
		fmt.Fprintf(b, "(More than %s is ruled out; between the two the search gave up.)\n", quantity.Multiple(d.Bound))
	}
	list := func(title string, n int, text func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(b, "\n%s\n", title)
		for i := range n {
			fmt.Fprintf(b, "  %s\n", text(i))
		}
	}
	list("What nothing serves:", len(d.Unserved), func(i int) string { return d.Unserved[i].Text })
	if len(d.Unserved) == 0 {
		shown := min(len(d.Bottlenecks), maxShown)
		list("What keeps it from being carried:", len(d.Limits)+shown, func(i int) string {
			if i < len(d.Limits) {
				return d.Limits[i].Text
			}
			return d.Bottlenecks[i-len(d.Limits)].Text
		})
		if n := len(d.Bottlenecks) - maxShown; n > 0 {
			fmt.Fprintf(b, "  and %d more apps, less so\n", n)
		}
	}
	mends, demands := d.Mends, 0
	mends = slices.DeleteFunc(slices.Clone(mends), func(m planning.Mend) bool {
		if m.Kind == "demand" {
			demands++
		}
		return demands > maxShown
	})
	title := "Any one of these would mend it:"
	if len(mends) == 1 {
		title = "This would mend it:"
	}
	list(title, len(mends), func(i int) string { return mends[i].Text })
	if !d.Carried && len(d.Mends) == 0 {
		fmt.Fprint(b,
			"\nNo change of one kind mends it: not more workers, budget or memory, lower floors, longer SLOs or less "+
				"demand of one app.\n")
	}
	_, err := fmt.Fprintf(w, "\n%s", b)
	return err
}
