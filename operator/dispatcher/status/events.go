package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

// changesOf says in words what a plan changed for each app: what was, what is, and why the plan was made.
func changesOf(p *board.PlanView) map[string]string {
	parts := make(map[string][]string)
	for k := range p.Changes {
		c := &p.Changes[k]
		what := strings.Join(c.Variants, ", ")
		if what == "" {
			what = c.Stage
		}
		parts[c.App] = append(parts[c.App], fmt.Sprintf("%s on %s: %d instead of %d", what, c.Kind, c.Instances,
			c.Before))
	}
	out := make(map[string]string, len(parts))
	for app, list := range parts {
		slices.Sort(list)
		more := ""
		if len(list) > maxParts {
			more = fmt.Sprintf(" and %d more", len(list)-maxParts)
			list = list[:maxParts]
		}
		out[app] = fmt.Sprintf("Plan %d (%s): instances of %s%s", p.Number, p.Why, strings.Join(list, "; "), more)
	}
	return out
}

// maxParts is the most changes that an event lists.
const maxParts = 6
