package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// promises runs 'sluice plan --promise'.
func (p *planFlags) promises(e *Env) error {
	want, err := parsePromise(p.promise)
	if err != nil {
		return err
	}
	q := &p.question
	if len(q.Changed) > 0 || len(q.Systems) > 1 || len(q.Demands) > 1 || p.after > 0 || p.frontier {
		return fault.Errorf(fault.Usage, "--promise searches the workers of one demand: leave out --what-if, "+
			"--compare, --after, --frontier and ranges of demand")
	}
	found, err := planning.Promises(e.Context, p.of, q.Systems[0], &q.Demands[0], *want)
	if err != nil {
		return err
	}
	e.bar.clear()
	best := planning.Cheapest(found)
	if p.asJSON {
		err = writeJSON(e.Stdout, struct {
			Wanted planning.Promise     `json:"wanted"`
			Types  []planning.Promising `json:"types"`
		}{*want, found})
	} else {
		err = printPromises(e.Stdout, found, best)
	}
	if err == nil {
		err = p.save(e, found, nil)
	}
	if err == nil && best == nil {
		err = fault.Errorf(fault.Short, "no number of workers of one type promises this")
	}
	return err
}

// parsePromise reads an accuracy and a share of late queries, with a comma between.
func parsePromise(text string) (*planning.Promise, error) {
	accuracy, violation, ok := strings.Cut(text, ",")
	a, err1 := strconv.ParseFloat(accuracy, 64)
	v, err2 := strconv.ParseFloat(violation, 64)
	if !ok || err1 != nil || err2 != nil || !(a >= 0 && a <= 1) || !(v >= 0 && v <= 1) {
		return nil, fault.Errorf(fault.Usage, "--promise %s: want an accuracy and a share of late queries, both "+
			"from 0 to 1, such as 0.8,0.001", text)
	}
	return &planning.Promise{Accuracy: a, Violation: v}, nil
}

func printPromises(w io.Writer, found []planning.Promising, best *planning.Promising) error {
	rows := [][]string{{"", "DEVICE TYPE", "WORKERS", "$/h", "ACCURACY", "LATE"}}
	for i := range found {
		x := &found[i]
		row := []string{"", x.DeviceType, fmt.Sprint(x.Workers), quantity.Dollars(x.CostPerHour), "-", "-"}
		if x == best {
			row[0] = "*"
		}
		if x.Workers == 0 {
			row[2], row[3] = fmt.Sprintf("not with %d", x.Most), "-"
		}
		if y := x.Promised; y != nil {
			row[4] = strconv.FormatFloat(100*y.Accuracy, 'f', 2, 64) + " %"
			row[5] = strconv.FormatFloat(100*y.Violation, 'f', 3, 64) + " %"
		}
		rows = append(rows, row)
	}
	return columns(w, "llrrrr", rows)
}
