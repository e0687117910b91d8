// Package samples reads folders of inputs to try models with: pictures, .npy and .json tensors, and recorded requests,
// with labels where there are some.
package samples

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// Bounds of a folder.
const (
	maxFiles     = 1 << 20
	maxFileBytes = 256 << 20
	maxLabels    = 64 << 20 // bytes of labels.csv
)

// labelsFile lists files with their labels, where folders do not.
const labelsFile = "labels.csv"

// Sample is one input.
type Sample struct {
	File  string // relative to the folder, with slashes
	Label string // "" when not known
}

// Folder is a folder of samples. It is safe for concurrent use.
type Folder struct {
	root    *os.Root
	Samples []Sample // sorted by file
	labels  []string // distinct ones, sorted
}

// Open lists the samples of a folder, at most so many of them, evenly spread over the list. It knows three layouts:
// labels.csv with FILE,LABEL on each line; a folder for each label, DIR/LABEL/FILE; and files without labels.
func Open(dir string, most int) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	f := &Folder{root: root}
	if err := f.list(); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("samples %s: %w", dir, err)
	}
	for _, s := range f.Samples {
		if s.Label != "" {
			f.labels = append(f.labels, s.Label)
		}
	}
	slices.Sort(f.labels)
	f.labels = slices.Compact(f.labels)
	if n := len(f.Samples); most > 0 && n > most {
		kept := make([]Sample, most)
		for k := range kept {
			kept[k] = f.Samples[k*n/most]
		}
		f.Samples = kept
	}
	return f, nil
}

// Close releases the folder.
func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) list() error {
	text, err := f.read(labelsFile, maxLabels)
	switch {
	case err == nil:
		return f.fromCSV(text)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	err = fs.WalkDir(f.root.FS(), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path.Base(file)[0] == '.' {
			return err
		}
		if len(f.Samples) == maxFiles {
			return fmt.Errorf("has more than %d files", maxFiles)
		}
		label := path.Dir(file)
		if label == "." {
			label = ""
		}
		f.Samples = append(f.Samples, Sample{file, label})
		return nil
	})
	if err == nil && len(f.Samples) == 0 {
		err = errors.New("has no files: want LABEL/FILE, or labels.csv with FILE,LABEL on each line")
	}
	slices.SortFunc(f.Samples, func(a, b Sample) int { return cmp.Compare(a.File, b.File) })
	return err
}

func (f *Folder) fromCSV(text []byte) error {
	r := csv.NewReader(newReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = 2, true, true
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w: want FILE,LABEL on each line", labelsFile, err)
		}
		if len(f.Samples) == maxFiles {
			return fmt.Errorf("%s: more than %d files", labelsFile, maxFiles)
		}
		if !fs.ValidPath(row[0]) || row[1] == "" {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("%s: line %d: %q, %q are no file of this folder and its label", labelsFile, line, row[0],
				row[1])
		}
		f.Samples = append(f.Samples, Sample{row[0], row[1]})
	}
	if len(f.Samples) == 0 {
		return fmt.Errorf("%s is empty", labelsFile)
	}
	slices.SortStableFunc(f.Samples, func(a, b Sample) int { return cmp.Compare(a.File, b.File) })
	return nil
}

func (f *Folder) read(name string, limit int64) ([]byte, error) {
	in, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return b, err
}

// Labelled reports whether every sample has a label.
func (f *Folder) Labelled() bool {
	return !slices.ContainsFunc(f.Samples, func(s Sample) bool { return s.Label == "" })
}

// Class returns the index of a label: its place among the names of the model's classes; a label that is a number is the
// index itself; where the model has no names, the place among the folder's labels, in the order of their bytes.
func (f *Folder) Class(label string, names []string) (int64, error) {
	if at := slices.Index(names, label); at >= 0 {
		return int64(at), nil
	}
	if n, err := strconv.ParseInt(label, 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	if len(names) > 0 {
		return 0, fmt.Errorf("label %q is none of the model's %d classes", label, len(names))
	}
	at, _ := slices.BinarySearch(f.labels, label)
	return int64(at), nil
}

// Inputs reads sample k as one item for a model with these inputs; batched models have the items first.
func (f *Folder) Inputs(k int, specs []tensor.Spec, batched bool) ([]tensor.Tensor, error) {
	s := &f.Samples[k]
	data, err := f.read(s.File, maxFileBytes)
	if err != nil {
		return nil, err
	}
	if path.Ext(s.File) == RequestExtension {
		return DecodeRequest(data)
	}
	if len(specs) != 1 {
		return nil, fmt.Errorf("%s: a file is one tensor, and the model has %d inputs: give requests (%s)", s.File,
			len(specs), RequestExtension)
	}
	t, err := Decode(s.File, data, &specs[0], batched)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	return []tensor.Tensor{t}, nil
}

// RequestExtension is how the names of recorded requests end.
const RequestExtension = ".request"

// EncodeRequest writes the inputs of a request in the form of a file: the length of the JSON on a line, then the body
// of a request of the Open Inference Protocol over HTTP.
func EncodeRequest(inputs []tensor.Tensor) ([]byte, error) {
	body, head, err := oip.EncodeRESTRequest(&oip.RESTRequest{Inputs: inputs}, true)
	if err != nil {
		return nil, err
	}
	return append(append(strconv.AppendInt(nil, int64(head), 10), '\n'), body...), nil
}

// DecodeRequest reads such a file.
func DecodeRequest(data []byte) ([]tensor.Tensor, error) {
	at := slices.Index(data[:min(len(data), 20)], '\n')
	if at < 0 {
		return nil, errors.New("is no recorded request: want the length of its JSON on the first line")
	}
	head, err := strconv.Atoi(string(data[:at]))
	if err != nil || head == 0 || head < oip.NoBinary {
		return nil, fmt.Errorf("is no recorded request: the length of its JSON is %q", data[:at])
	}
	r, err := oip.DecodeREST(data[at+1:], head, oip.Bounds{}, nil, nil)
	if err != nil {
		return nil, err
	}
	return r.Inputs, nil
}
