package oip

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sluice-serving/sluice/tensor"
)

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\t' || b[at] == '\r') {
		at++
	}
	return at
}

func skipString(b []byte, at int) (end int, err error) {
	for at++; at < len(b); at++ {
		switch b[at] {
		case '\\':
			at++
		case '"':
			return at + 1, nil
		}
	}
	return 0, invalid("", "a string does not end")
}

// skipValue returns the end of the array at at; tensor data is nothing else.
func skipValue(b []byte, at int) (end int, err error) {
	if at >= len(b) || b[at] != '[' {
		return 0, invalid("", "tensor data must be an array")
	}
	depth := 0
	for at < len(b) {
		switch b[at] {
		case '[':
			if depth++; depth > maxDepth {
				return 0, invalid("", "tensor data is nested more than %d deep", maxDepth)
			}
		case ']':
			if depth--; depth == 0 {
				return at + 1, nil
			}
		case '"':
			if at, err = skipString(b, at); err != nil {
				return 0, err
			}
			continue
		}
		at++
	}
	return 0, invalid("", "tensor data does not end")
}

// scanData turns a JSON array, flat or nested in any way, into a block of n elements. Whole numbers are exact to 64
// bits; floating-point types take bare NaN, Infinity and -Infinity.
func scanData(d tensor.DType, n int64, b []byte) ([]byte, error) {
	if d == tensor.FP16 || d == tensor.BF16 {
		return nil, fmt.Errorf("%s has no JSON form: send it as binary data", d)
	}
	// A shape cannot reserve memory for elements that are not there: between two elements stands a comma.
	out := make([]byte, 0, min(n, commas(b)+1)*int64(max(d.Size(), 1)))
	count := int64(0)
	depth := 0
	value := true // a value or the end of the array may follow
	for at := 0; ; {
		at = skipSpace(b, at)
		if at >= len(b) {
			return nil, errors.New("data does not end")
		}
		switch c := b[at]; c {
		case '[':
			if !value {
				return nil, fmt.Errorf("data has %q where a comma must stand", c)
			}
			depth++
			at++
		case ']':
			if value && depth > 0 && at > 0 && lastOf(b[:at]) == ',' {
				return nil, errors.New("data has a comma before a closing bracket")
			}
			if depth--; depth == 0 {
				if rest := skipSpace(b, at+1); rest != len(b) {
					return nil, errors.New("data continues after its end")
				}
				if count != n {
					return nil, fmt.Errorf("data has %d elements, the shape needs %d", count, n)
				}
				return out, nil
			}
			value = false
			at++
		case ',':
			if value || depth == 0 {
				return nil, errors.New("data has a comma where a value must stand")
			}
			value = true
			at++
		default:
			if !value || depth == 0 {
				return nil, fmt.Errorf("data has %q where a comma must stand", c)
			}
			if count++; count > n {
				return nil, fmt.Errorf("data has more than the %d elements that the shape needs", n)
			}
			var err error
			if out, at, err = appendElement(out, d, b, at); err != nil {
				return nil, fmt.Errorf("data[%d]: %w", count-1, err)
			}
			value = false
		}
	}
}

// commas counts them: there are as many between elements, at most.
func commas(b []byte) int64 { return int64(bytes.Count(b, []byte{','})) }

func lastOf(b []byte) byte {
	b = bytes.TrimRight(b, " \n\t\r")
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1]
}

// appendElement reads one element at b[at] and returns the position after it.
func appendElement(out []byte, d tensor.DType, b []byte, at int) ([]byte, int, error) {
	if d == tensor.Bytes {
		if b[at] != '"' {
			return nil, 0, errors.New("a BYTES element must be a string")
		}
		end, err := skipString(b, at)
		if err != nil {
			return nil, 0, err
		}
		if text := b[at+1 : end-1]; isPlain(text) {
			return tensor.AppendBytes(out, text), end, nil
		}
		var s string
		if err := json.Unmarshal(b[at:end], &s); err != nil {
			return nil, 0, err
		}
		return tensor.AppendBytes(out, []byte(s)), end, nil
	}
	end := at
	for end < len(b) && b[end] != ',' && b[end] != ']' && b[end] != ' ' && b[end] != '\n' && b[end] != '\r' &&
		b[end] != '\t' && b[end] != '[' && b[end] != '}' {
		end++
	}
	word := string(b[at:end])
	if len(word) > 400 {
		return nil, 0, errors.New("a number of more than 400 digits")
	}
	le := binary.LittleEndian
	bad := func() ([]byte, int, error) { // a copy for the error, so that word need not be on the heap
		return nil, 0, fmt.Errorf("%.40q is no %s", string(b[at:end]), d)
	}
	switch d {
	case tensor.Bool:
		switch word {
		case "true", "1":
			return append(out, 1), end, nil
		case "false", "0":
			return append(out, 0), end, nil
		}
		return bad()
	case tensor.FP32, tensor.FP64:
		f, ok := float(word, 8*d.Size())
		if !ok {
			return bad()
		}
		if d == tensor.FP32 {
			return le.AppendUint32(out, math.Float32bits(float32(f))), end, nil
		}
		return le.AppendUint64(out, math.Float64bits(f)), end, nil
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		v, err := strconv.ParseUint(whole(word), 10, 8*d.Size())
		if err != nil {
			return bad()
		}
		return le.AppendUint64(out, v)[:len(out)+d.Size()], end, nil
	}
	v, err := strconv.ParseInt(whole(word), 10, 8*d.Size())
	if err != nil {
		return bad()
	}
	return le.AppendUint64(out, uint64(v))[:len(out)+d.Size()], end, nil
}

// isPlain reports whether the text of a JSON string stands for itself: it has no escapes and nothing that JSON forbids.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(text)
}

// whole accepts 3.0 for 3, as clients in languages with one number type send it, and no sign but a minus.
func whole(word string) string {
	for k := len(word) - 1; k > 0; k-- {
		if word[k] == '.' {
			return word[:k]
		}
		if word[k] != '0' {
			break
		}
	}
	if len(word) > 0 && word[0] == '+' {
		return ""
	}
	return word
}

// float reads a JSON number or one of the bare words that JSON lacks. A number beyond the type is none of it, as with
// integers: the infinity that it would become is written as such.
func float(word string, bits int) (float64, bool) {
	switch word {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	if word == "" || (word[0] != '-' && (word[0] < '0' || word[0] > '9')) {
		return 0, false // strconv also accepts hexadecimal, inf and others
	}
	for k := range len(word) {
		if c := word[k]; (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(word, bits)
	return f, err == nil
}
