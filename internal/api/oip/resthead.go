package oip

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// jsonFields are the members of a JSON object of parameters, each name once.
type jsonFields []jsonField

type jsonField struct {
	name  string
	value json.RawMessage
}

// get returns the value of a member.
func (f jsonFields) get(name string) (json.RawMessage, bool) {
	for k := range f {
		if f[k].name == name {
			return f[k].value, true
		}
	}
	return nil, false
}

// shared reports whether any member is about shared memory.
func (f jsonFields) shared() bool {
	return slices.ContainsFunc(f, func(x jsonField) bool { return strings.HasPrefix(x.name, "shared_memory_") })
}

// UnmarshalJSON implements json.Unmarshaler. Of members with one name the last counts.
func (f *jsonFields) UnmarshalJSON(b []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	*f = make(jsonFields, 0, len(m))
	for name, v := range m {
		*f = append(*f, jsonField{name, v})
	}
	slices.SortFunc(*f, func(a, b jsonField) int { return strings.Compare(a.name, b.name) })
	return nil
}

// headReader reads a message as clients usually write it, in one pass: members of known names, each once, strings
// without escapes, parameters that are scalars. It gives up on everything else, which encoding/json then reads, and
// wherever a bound may be broken, so that it returns no error of its own. What it accepts means what encoding/json
// takes it to mean; a fuzz test compares the two.
type headReader struct {
	b      []byte
	at     int
	cut    int // bytes of tensor data
	bounds *Bounds
}

// readHead returns false where it gives up. m is then of no use.
func readHead(head []byte, bounds *Bounds, m *restMessage) bool {
	r := headReader{b: head, bounds: bounds}
	var seen seenKeys
	ok := r.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "model_name":
			m.ModelName, ok = r.text()
		case "model_version":
			m.ModelVersion, ok = r.text()
		case "id":
			m.ID, ok = r.text()
		case "parameters":
			m.Parameters, ok = r.parameters()
		case "inputs":
			m.Inputs, ok = r.tensors()
		case "outputs":
			m.Outputs, ok = r.tensors()
		}
		return ok && seen.first(key)
	})
	// Cut data leaves its index behind, of at most ten digits.
	lean := len(head) - r.cut + 10*(len(m.Inputs)+len(m.Outputs))
	return ok && r.space() == len(head) && lean <= bounds.Head
}

// seenKeys are the members of an object that were read: at most as many as an object has known names.
type seenKeys struct {
	keys [6][]byte
	n    int
}

// first adds a name. It returns false for one that was there before.
func (s *seenKeys) first(key []byte) bool {
	for _, k := range s.keys[:s.n] {
		if bytes.Equal(k, key) {
			return false
		}
	}
	if s.n == len(s.keys) {
		return false
	}
	s.keys[s.n] = key
	s.n++
	return true
}

// space skips white space.
func (r *headReader) space() int {
	r.at = skipSpace(r.b, r.at)
	return r.at
}

// next skips white space and c; false, without moving further, if something else stands there.
func (r *headReader) next(c byte) bool {
	if r.space() < len(r.b) && r.b[r.at] == c {
		r.at++
		return true
	}
	return false
}

// list reads what is between two brackets: entries with commas between them.
func (r *headReader) list(open, end byte, entry func() bool) bool {
	if !r.next(open) {
		return false
	}
	if r.next(end) {
		return true
	}
	for {
		if !entry() {
			return false
		}
		if r.next(end) {
			return true
		}
		if !r.next(',') {
			return false
		}
	}
}

// object reads an object. value reads the value of a member.
func (r *headReader) object(value func(key []byte) bool) bool {
	return r.list('{', '}', func() bool {
		key, ok := r.plain()
		return ok && r.next(':') && value(key)
	})
}

// plain reads a string that stands for itself.
func (r *headReader) plain() ([]byte, bool) {
	if r.space() >= len(r.b) || r.b[r.at] != '"' {
		return nil, false
	}
	end, err := skipString(r.b, r.at)
	if err != nil {
		return nil, false
	}
	text := r.b[r.at+1 : end-1]
	r.at = end
	return text, len(text) <= longPlain && r.at-r.cut <= r.bounds.Head && isPlain(text)
}

// longPlain is the longest string that is read here, in bytes.
const longPlain = 1 << 10

func (r *headReader) text() (string, bool) {
	b, ok := r.plain()
	if !ok {
		return "", false
	}
	return string(b), true
}

// parameters reads an object of scalars.
func (r *headReader) parameters() (jsonFields, bool) {
	f := make(jsonFields, 0, 2)
	ok := r.object(func(key []byte) bool {
		if _, twice := f.get(string(key)); twice || len(f) >= min(r.bounds.Parameters, mostPlain) {
			return false
		}
		v, ok := r.scalar()
		f = append(f, jsonField{parameterName(key), v})
		return ok
	})
	return f, ok
}

// parameterName is a text without a copy for the names that most requests have.
func parameterName(key []byte) string {
	switch string(key) {
	case "binary_data":
		return "binary_data"
	case "binary_data_size":
		return "binary_data_size"
	case "binary_data_output":
		return "binary_data_output"
	}
	return string(key)
}

// mostPlain is how many parameters are read here: comparing each with each takes long for many.
const mostPlain = 32

// scalar reads a plain string, a number, true or false.
func (r *headReader) scalar() (json.RawMessage, bool) {
	from := r.space()
	if from < len(r.b) && r.b[from] == '"' {
		_, ok := r.plain()
		return r.b[from:r.at], ok
	}
	for r.at < len(r.b) && !strings.ContainsRune(",]} \t\r\n", rune(r.b[r.at])) {
		r.at++
	}
	word := r.b[from:r.at]
	return word, string(word) == "true" || string(word) == "false" || isNumber(word)
}

// isNumber reports whether a word is a JSON number.
func isNumber(word []byte) bool {
	if len(word) == 0 || word[0] != '-' && (word[0] < '0' || word[0] > '9') {
		return false
	}
	for k, c := range word {
		if c < '0' || c > '9' || c == '0' && k == 0 {
			return json.Valid(word)
		}
	}
	return true
}

// tensors reads a list of tensors.
func (r *headReader) tensors() (out []restTensor, ok bool) {
	out = make([]restTensor, 0, 2)
	ok = r.list('[', ']', func() bool {
		if len(out) >= r.bounds.Tensors {
			return false
		}
		out = append(out, restTensor{})
		return r.tensor(&out[len(out)-1])
	})
	return out, ok
}

func (r *headReader) tensor(t *restTensor) bool {
	var seen seenKeys
	return r.object(func(key []byte) (ok bool) {
		switch string(key) {
		case "name":
			t.Name, ok = r.text()
		case "datatype":
			t.Datatype, ok = r.text()
		case "shape":
			from := r.space()
			t.dims, ok = r.shape()
			t.Shape = r.b[from:r.at]
		case "parameters":
			t.Parameters, ok = r.parameters()
		case "data":
			from := r.space()
			end, err := skipValue(r.b, from)
			if ok = err == nil; ok {
				t.Data, r.at = r.b[from:end], end
				r.cut += end - from
			}
		}
		return ok && seen.first(key)
	})
}

// shape reads a list of whole numbers.
func (r *headReader) shape() (dims []int64, ok bool) {
	dims = make([]int64, 0, 4)
	ok = r.list('[', ']', func() bool {
		from := r.space()
		n := int64(0)
		for r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9' {
			n = 10*n + int64(r.b[r.at]-'0')
			r.at++
		}
		dims = append(dims, n)
		digits := r.at - from
		return digits > 0 && digits <= 18 && (digits == 1 || r.b[from] != '0') && len(dims) <= MaxRank
	})
	return dims, ok
}
