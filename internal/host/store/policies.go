package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Policies keeps policy tables in a folder, one file for each, named by the key of what it was made from. A file that
// cannot be read, or whose content does not fit its name, counts as missing. It is safe for concurrent use.
type Policies struct {
	dir string
	mu  sync.Mutex
	err error
}

// PolicyFormat is the "format" of a policy file, the name and version of the layout.
const PolicyFormat = "sluice-policy/1"

// maxPolicy bounds a policy file: 256 queries by 1,001 slacks take about 6 MB.
const maxPolicy = 64 << 20

// policyFile is the content of a policy file.
type policyFile struct {
	Format   string  `json:"format"`
	Key      string  `json:"key"`
	Rate     float64 `json:"rate"` // queries/s
	Accuracy float64 `json:"expected_accuracy"`
	Late     float64 `json:"expected_violation_ratio"`
	Median   float64 `json:"median_accuracy"`
	Worst    float64 `json:"worst_99_accuracy"`
	Busy     float64 `json:"utilization"`
	SlacksNS []int64 `json:"slacks_ns"`
	// Variants and Queries are by length of the queue, then slack.
	Variants [][]int32 `json:"variants"`
	Queries  [][]int32 `json:"queries"`
}

// OpenPolicies returns the policies of a folder. The folder is made when the first policy is kept.
func OpenPolicies(dir string) *Policies { return &Policies{dir: dir} }

// Err returns the first error of writing.
func (p *Policies) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// policyKey is the form of a key. It has no characters with a meaning in paths.
var policyKey = regexp.MustCompile(`^[0-9a-f]{16,64}$`)

func (p *Policies) path(key string) string { return filepath.Join(p.dir, key+".json") }

// Get returns the policy with a key (ramsis.Worker.Key); ok is false when there is none.
func (p *Policies) Get(key string) (*plan.Policy, bool) {
	if !policyKey.MatchString(key) {
		return nil, false
	}
	f, err := os.Open(p.path(key))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	out, err := ReadPolicy(f, key)
	return out, err == nil
}

// Put writes the policy with a key. Errors are kept for Err.
func (p *Policies) Put(key string, x *plan.Policy) {
	if err := p.put(key, x); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.err == nil {
			p.err = fmt.Errorf("policy %s was not kept: %w", key, err)
		}
	}
}

func (p *Policies) put(key string, x *plan.Policy) error {
	if !policyKey.MatchString(key) {
		return fmt.Errorf("key %q is no key", key)
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	// Written to a temporary file and renamed, so that readers find all of it or nothing.
	f, err := os.CreateTemp(p.dir, ".policy-*")
	if err != nil {
		return err
	}
	err = errors.Join(WritePolicy(f, key, x), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), p.path(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// WritePolicy writes a policy in the format of a policy file.
func WritePolicy(w io.Writer, key string, x *plan.Policy) error {
	f := policyFile{Format: PolicyFormat, Key: key, Rate: x.Rate, Accuracy: x.Promise.Accuracy,
		Late: x.Promise.Violation, Median: x.Promise.MedianAccuracy,
		Worst: x.Promise.Worst99Accuracy, Busy: x.Promise.Utilization}
	for _, s := range x.Slacks {
		f.SlacksNS = append(f.SlacksNS, int64(s))
	}
	for at := 0; at < len(x.Choices); at += len(x.Slacks) {
		var variants, queries []int32
		for _, c := range x.Choices[at : at+len(x.Slacks)] {
			variants, queries = append(variants, int32(c.Variant)), append(queries, c.Queries)
		}
		f.Variants, f.Queries = append(f.Variants, variants), append(f.Queries, queries)
	}
	return json.NewEncoder(w).Encode(&f)
}

// ReadPolicy reads a policy file. It fails when key is not "" and the file has another key. It checks the layout;
// plan.Plan.Validate checks whether the variants exist.
func ReadPolicy(r io.Reader, key string) (*plan.Policy, error) {
	var f policyFile
	if err := json.NewDecoder(io.LimitReader(r, maxPolicy)).Decode(&f); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if f.Format != PolicyFormat {
		return nil, fmt.Errorf("policy: format is %q, want %q", f.Format, PolicyFormat)
	}
	if key != "" && f.Key != key {
		return nil, fmt.Errorf("policy: made from %q, want %q", f.Key, key)
	}
	if len(f.SlacksNS) == 0 || len(f.Variants) == 0 || len(f.Variants) != len(f.Queries) {
		return nil, fmt.Errorf("policy: %d slacks, %d rows of variants and %d of queries", len(f.SlacksNS),
			len(f.Variants), len(f.Queries))
	}
	out := &plan.Policy{
		Rate: f.Rate, Promise: plan.Promise{
			Accuracy: f.Accuracy, Violation: f.Late, MedianAccuracy: f.Median, Worst99Accuracy: f.Worst,
			Utilization: f.Busy,
		},
	}
	for _, s := range f.SlacksNS {
		out.Slacks = append(out.Slacks, time.Duration(s))
	}
	for n := range f.Variants {
		if len(f.Variants[n]) != len(out.Slacks) || len(f.Queries[n]) != len(out.Slacks) {
			return nil, fmt.Errorf("policy: row %d has %d variants and %d queries for %d slacks", n+1,
				len(f.Variants[n]), len(f.Queries[n]), len(out.Slacks))
		}
		for j := range out.Slacks {
			if q := f.Queries[n][j]; q < 1 || int(q) > n+1 {
				return nil, fmt.Errorf("policy: takes %d of %d queries", q, n+1)
			}
			out.Choices = append(out.Choices, plan.Choice{
				Variant: serving.VariantID(f.Variants[n][j]), Queries: f.Queries[n][j],
			})
		}
	}
	return out, nil
}
