package digits

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Ladder is the content of ladder.json, which describes a repository of models built here. Variants come cheapest
// first.
type Ladder struct {
	Task     string             `json:"task"`
	Seed     uint64             `json:"seed"`
	Settings string             `json:"settings"` // hash of what the ladder was built from
	Variants []LadderVariant    `json:"variants"`
	HeldOut  HeldOut            `json:"heldout"`
	Seconds  map[string]float64 `json:"seconds"` // time of building, by stage
}

// LadderVariant is one model. Accuracy is the share of held-out pictures that it labels correctly, in [0, 1].
// Multiplications is their number for one picture.
type LadderVariant struct {
	Name            string  `json:"name"`
	Stage           string  `json:"stage,omitempty"` // of a pipeline, that it is for
	Accuracy        float64 `json:"accuracy"`
	Parameters      int     `json:"parameters"`
	Multiplications int     `json:"products"`
	Bytes           int64   `json:"bytes"`
}

// HeldOut are the pictures that accuracies were measured on: Set(Seed, N). No training uses them.
type HeldOut struct {
	Seed uint64 `json:"seed"`
	N    int    `json:"n"`
}

const ladderFile = "ladder.json"

// Model returns the path of a variant's model in the repository dir.
func Model(dir, variant string) string { return filepath.Join(dir, variant, "1", "model.onnx") }

// Load reads a ladder that Build has written and checks that its models are there.
func Load(dir string) (*Ladder, error) { return load(dir, task) }

func load(dir, task string) (*Ladder, error) {
	path := filepath.Join(dir, ladderFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load ladder: %w", err)
	}
	defer func() { _ = f.Close() }()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("load ladder %s: %w", path, err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("load ladder %s: larger than %d bytes", path, most)
	}
	var l Ladder
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("load ladder %s: %w", path, err)
	}
	if err := l.check(dir, task); err != nil {
		return nil, fmt.Errorf("load ladder %s: %w; remove the folder and build it again", path, err)
	}
	return &l, nil
}

func (l *Ladder) check(dir, task string) error {
	if l.Task != task || len(l.Variants) == 0 {
		return fmt.Errorf("the task is %q with %d variants, want %q with some", l.Task, len(l.Variants), task)
	}
	for _, v := range l.Variants {
		if !filepath.IsLocal(v.Name) || filepath.Base(v.Name) != v.Name || v.Name == "." {
			return fmt.Errorf("variant %q: not a folder's name", v.Name)
		}
		if !(v.Accuracy >= 0 && v.Accuracy <= 1) {
			return fmt.Errorf("variant %q: accuracy %v is not from 0 to 1", v.Name, v.Accuracy)
		}
		st, err := os.Stat(Model(dir, v.Name))
		if err != nil {
			return fmt.Errorf("variant %q: %w", v.Name, err)
		}
		if st.Size() != v.Bytes {
			return fmt.Errorf("variant %q: %s has %d bytes, want %d", v.Name, Model(dir, v.Name), st.Size(), v.Bytes)
		}
	}
	return nil
}

func (l *Ladder) write(dir string) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("write ladder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ladderFile), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write ladder: %w", err)
	}
	return nil
}

// replace moves the folder tmp to dir. dir may hold an older ladder or not exist; anything else is an error.
func replace(dir, tmp string) error {
	if err := replaceable(dir); err != nil {
		return err
	}
	old := tmp + ".old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("build ladder: %w", err)
	}
	had := err == nil
	if err := os.Rename(tmp, dir); err != nil {
		if had {
			_ = os.Rename(old, dir)
		}
		return fmt.Errorf("build ladder: %w", err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("build ladder: remove the one before: %w", err)
	}
	return nil
}

func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("build ladder: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ladderFile)); err != nil {
		return fmt.Errorf("build ladder: folder %s holds something else than a ladder: name another or empty it", dir)
	}
	return nil
}
