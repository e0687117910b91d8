package infless

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// operatorKind is what one kind of operator does in a query: how often it is called, and the time of all its calls.
type operatorKind struct{ calls, us float64 }

// published7 are the shares of the time in which the paper has operators that dominate, in per cent (§3.3): MatMul and
// FusedMatMul of the LSTM, Conv2D of ResNet-50; and how many kinds there are.
var published7 = map[string]struct{ kinds, dominant, of float64 }{
	"lstm-2365 cpu": {kinds: 27, dominant: 2, of: 76}, "resnet-50 cpu": {kinds: 8, dominant: 1, of: 95},
}

// readOperators returns the artifact's operators by function and device, those that take longest first. It does not
// name them.
func readOperators() (names []string, all map[string][]operatorKind, err error) {
	all = make(map[string][]operatorKind)
	err = data.Read("operators.csv", "function,device,calls,us", 2, func(key []string, v []float64) error {
		name := key[0] + " " + key[1]
		if all[name] == nil {
			names = append(names, name)
		}
		all[name] = append(all[name], operatorKind{v[0], v[1]})
		return nil
	})
	for _, list := range all {
		slices.SortFunc(list, func(a, b operatorKind) int { return cmp.Compare(b.us, a.us) })
	}
	return names, all, err
}

// figure7 adds up the artifact's times of operators, of one query.
func figure7(_ *runner, f *reproduce.Sheet) error {
	names, all, err := readOperators()
	if err != nil {
		return err
	}
	c := f.Chart("7", title("7: time by kind of operator"), 1).Bars("share of the time (%)")
	for _, name := range names {
		list, says := all[name], published7[name]
		sum, calls := 0.0, 0.0
		for _, x := range list {
			sum, calls = sum+x.us, calls+x.calls
		}
		at := f.At("operators", "of one query")
		kinds := at.Row(name, "kinds", "", reproduce.Const(float64(len(list))))
		if says.kinds > 0 {
			kinds.Published(says.kinds, "Figure 7's caption")
		}
		at.Row(name, "calls", "", reproduce.Const(calls))
		at.Row(name, "time", "ms", reproduce.Const(sum/1000))
		first := 0.0
		for k, x := range list[:3] {
			first += x.us
			r := at.Row(name, fmt.Sprintf("the %d that take longest", k+1), "%", reproduce.Const(100*first/sum))
			if float64(k+1) == says.dominant {
				r.Published(says.of, "§3.3")
			}
			c.Bar(name, fmt.Sprint(k+1), reproduce.Const(100*x.us/sum))
		}
		at.Row(name, "calls of the first", "", reproduce.Const(list[0].calls))
	}
	f.Note("Figure 7: the artifact's calls and times, which do not name their operators; the two of the LSTM that " +
		"take longest are called 81 and 16 times, and the text says that MatMul is called 81 times. 'sluice profile " +
		"--operators' prints the same of any network.")
	return nil
}
