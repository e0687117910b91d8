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
	_, _ = fmt.Fprintf(h, "%q %q %q\n", vr.Name, vr.Version, c.Spec.DeviceTypes[c.DeviceType].Name)
	_, _ = fmt.Fprintf(h, "pauses %v %v %d %d %v\n", c.MeanWidth, c.P95Width, c.MinSamples, c.MaxSamples, c.MaxTime)
	_, err := c.content(h, v)
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

// Digest identifies what a variant's results depend on whatever it is called: its content, the machine, and the batches
// that are measured. It is empty where nobody knows the content.
func (c *Config) Digest(v serving.VariantID) (string, error) {
	h := sha256.New()
	known, err := c.content(h, v)
	if err != nil || !known {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// content hashes a variant's content, the machine, and the batches. known is false where the content is not known.
func (c *Config) content(h io.Writer, v serving.VariantID) (known bool, err error) {
	_, _ = fmt.Fprintf(h, "%d %+v %d %d %d\n", Version, c.Host, c.maxBatch(v), c.Slots, c.Cores)
	if c.Identity != nil {
		_, _ = fmt.Fprintf(h, "%q\n", c.Identity(v))
	}
	if c.ModelFile == nil || c.ModelFile(v) == "" {
		return false, nil
	}
	f, err := os.Open(c.ModelFile(v))
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(h, f)
	return true, err
}
