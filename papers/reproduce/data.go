package reproduce

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Data reads the CSV tables that a paper's package embeds in its folder data.
type Data struct{ Files fs.ReadFileFS }

// Records returns the lines of data/NAME after its first one, which must equal head. Lines that begin with # are
// comments.
func (d Data) Records(name string, head ...string) ([][]string, error) {
	name = "data/" + name
	text, err := d.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Records(name, text, head...)
}

// Read calls line for every line of data/NAME. It begins with so many words and continues with numbers. head are the
// names of its columns, with commas between them.
func (d Data) Read(name, head string, words int, line func(key []string, v []float64) error) error {
	rows, err := d.Records(name, strings.Split(head, ",")...)
	if err != nil {
		return err
	}
	for n, r := range rows {
		v, err := Numbers(name, n, r[words:])
		if err != nil {
			return err
		}
		if err := line(r[:words], v); err != nil {
			return fmt.Errorf("data/%s: record %d: %w", name, n+1, err)
		}
	}
	return nil
}

// Records parses text as CSV and returns the lines after the first one, which must equal head. Lines that begin with #
// are comments. name is used in errors only.
func Records(name string, text []byte, head ...string) ([][]string, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comment = '#'
	out, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(out) == 0 || !slices.Equal(out[0], head) {
		return nil, fmt.Errorf("%s: its first line is not %s", name, strings.Join(head, ","))
	}
	return out[1:], nil
}

// Numbers parses fields as floating-point numbers. name and record, counted from 0, are used in errors only.
func Numbers(name string, record int, fields []string) ([]float64, error) {
	out := make([]float64, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = strconv.ParseFloat(f, 64); err != nil {
			return nil, fmt.Errorf("data/%s: record %d: %q is no number", name, record+1, f)
		}
	}
	return out, nil
}
