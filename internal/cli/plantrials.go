package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// printTrials writes what was simulated before a plan was chosen.
func printTrials(w io.Writer, v *planning.Plan) error {
	if len(v.Trials) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	rows := [][]string{{"", "TRIED", "MACHINES", "$/h", "LOADS", "LATE", "+-", "ACCURACY", "UTILITY"}}
	for i := range v.Trials {
		t := &v.Trials[i]
		mark, what := "", t.Candidate
		if t.Adopted {
			mark = "*"
		}
		if t.Sheds {
			what += ", sheds"
		}
		var machines []string
		for _, name := range slices.Sorted(maps.Keys(t.Machines)) {
			machines = append(machines, fmt.Sprintf("%d %s", t.Machines[name], name))
		}
		rows = append(rows, []string{
			mark, what, strings.Join(machines, ", "), quantity.Dollars(t.CostPerHour), strconv.Itoa(t.Loads),
			quantity.Percent(t.Violation), quantity.Percent(t.Deviation), quantity.Accuracy(t.Accuracy),
			strconv.FormatFloat(t.Utility, 'f', 4, 64),
		})
	}
	return columns(w, "lllrrrrrr", rows)
}
