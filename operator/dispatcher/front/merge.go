package front

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
)

// stateReady is the state of a model in the repository index that is served.
const stateReady = "READY"

// merge joins what two cells say of an app of which both have a part: counts and times are added up, the last of two
// moments counts, and the app is ready where one of them has it ready. What cannot be read is left out.
func merge(a, b json.RawMessage) json.RawMessage {
	x, errX := decoded(a)
	y, errY := decoded(b)
	if errX != nil || errY != nil {
		return a
	}
	out, err := json.Marshal(joinedValue("", x, y))
	if err != nil {
		return a
	}
	return out
}

func decoded(text []byte) (x any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // nanoseconds need all their digits
	err = d.Decode(&x)
	return x, err
}

// joinedValue joins two values of a field.
func joinedValue(field string, x, y any) any {
	switch x := x.(type) {
	case map[string]any:
		other, ok := y.(map[string]any)
		if !ok {
			return x
		}
		if other["state"] == stateReady && x["state"] != stateReady {
			return other // the reason of the other is no reason any more
		}
		for k, v := range other {
			if before, ok := x[k]; ok {
				v = joinedValue(k, before, v)
			}
			x[k] = v
		}
		return x
	case []any:
		other, _ := y.([]any)
		return joinedList(x, other)
	case json.Number:
		other, ok := y.(json.Number)
		if !ok {
			return x
		}
		return joinedNumber(field, x, other)
	}
	return x
}

// joinedNumber adds two counts, or takes the later of two moments.
func joinedNumber(field string, x, y json.Number) json.Number {
	a, okA := new(big.Int).SetString(string(x), 10)
	b, okB := new(big.Int).SetString(string(y), 10)
	if !okA || !okB {
		return x
	}
	if field == "last_inference" || field == "batch_size" {
		if a.Cmp(b) < 0 {
			return y
		}
		return x
	}
	return json.Number(a.Add(a, b).String())
}

// joinedList joins statistics by batch size: those of equal sizes are added up.
func joinedList(x, y []any) []any {
	size := func(v any) any {
		m, _ := v.(map[string]any)
		return m["batch_size"]
	}
	for _, v := range y {
		at := slices.IndexFunc(x, func(w any) bool { return size(w) != nil && size(w) == size(v) })
		switch {
		case at >= 0:
			x[at] = joinedValue("", x[at], v)
		case size(v) != nil:
			x = append(x, v)
		}
	}
	return x
}
