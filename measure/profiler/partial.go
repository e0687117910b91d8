package profiler

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/serving"
)

// partialRecord is one line of a partial file.
type partialRecord struct {
	Key   string `json:"key"` // of the model file and of all settings that the result depends on
	Point *Point `json:"point,omitempty"`
	Load  *Load  `json:"load,omitempty"`
	// Memory replaces that of earlier records.
	Memory *Memory `json:"memory,omitempty"`
}

// partial is the append-only file of finished points. The zero value records nothing.
type partial struct {
	path   string
	f      *os.File
	points map[string]map[pointKey]Point // by key
	loads  map[string]Load
	memory map[string]Memory
}

// openPartial reads finished points and opens the file for more. Lines that a crash cut short or that a later version
// wrote are skipped; their points are measured again.
func openPartial(path string) (*partial, error) {
	p := &partial{path: path, points: map[string]map[pointKey]Point{}, loads: map[string]Load{},
		memory: map[string]Memory{}}
	if path == "" {
		return p, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("profiler: partial results: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("profiler: partial results: %w", err)
	}
	p.f = f
	if err := p.read(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("profiler: partial results in %s: %w", path, err)
	}
	return p, nil
}

func (p *partial) read(r io.Reader) error {
	in := bufio.NewReaderSize(io.LimitReader(r, maxFileBytes), 64<<10)
	for {
		b, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if errors.Is(err, io.EOF) {
			if len(b) > 0 { // the next line must not continue this one
				_, err = p.f.Write([]byte{'\n'})
				return err
			}
			return nil
		}
		var l partialRecord
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if d.Decode(&l) != nil {
			continue
		}
		if l.Point != nil && l.Point.validate() == nil {
			if p.points[l.Key] == nil {
				p.points[l.Key] = map[pointKey]Point{}
			}
			p.points[l.Key][l.Point.key()] = *l.Point
		}
		if l.Load != nil {
			p.loads[l.Key] = *l.Load
		}
		if l.Memory != nil && validMemory([]Memory{*l.Memory}) == nil {
			p.memory[l.Key] = *l.Memory
		}
	}
}

// add appends one result and syncs, so that it survives a crash.
func (p *partial) add(l partialRecord) error {
	if p.f == nil {
		return nil
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := p.f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("profiler: partial results: %w", err)
	}
	return nil
}

func (p *partial) close() error {
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}

// key hashes all that a variant's results depend on: the model, the machine, and the exactness of the measurement.
func (c *Config) key(v serving.VariantID) (string, error) {
	h := sha256.New()
	vr := &c.Spec.Variants[v]
	_, _ = fmt.Fprintf(h, "%d %q %q %q %+v\n", Version, vr.Name, vr.Version, c.Spec.DeviceTypes[c.DeviceType].Name,
		c.Host)
	_, _ = fmt.Fprintf(h, "pauses %d %d %d %v %v %d %d %v\n", c.maxBatch(v), c.Slots, c.Cores, c.MeanWidth, c.P95Width,
		c.MinSamples, c.MaxSamples, c.MaxTime)
	if c.Identity != nil {
		_, _ = fmt.Fprintf(h, "%q\n", c.Identity(v))
	}
	if c.ModelFile != nil && c.ModelFile(v) != "" {
		f, err := os.Open(c.ModelFile(v))
		if err != nil {
			return "", fmt.Errorf("profiler: variant %q: %w", vr.Name, err)
		}
		defer func() { _ = f.Close() }()
		if _, err := io.Copy(h, f); err != nil {
			return "", fmt.Errorf("profiler: variant %q: %w", vr.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
