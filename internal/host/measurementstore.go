package host

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// maxKept bounds the models in Options.Measured. The oldest ones go.
const maxKept = 4096

// kept returns what an earlier run has measured of a model of the same content, on such a machine, under the names of
// the variant and the device type; nil where none has.
func (o *Opened) kept(c *profiler.Config, v serving.VariantID) *profiler.File {
	path := o.keptAt(c, v)
	if path == "" {
		return nil
	}
	f, err := profiler.ReadFile(path)
	if err != nil {
		return nil
	}
	f.Rename(c.Spec.Variants[v].Name, c.Spec.DeviceTypes[c.DeviceType].Name)
	if f.Validate() != nil {
		return nil
	}
	return f
}

// Keep keeps what was measured of a variant for later runs.
func (o *Opened) Keep(c *profiler.Config, v serving.VariantID, f *profiler.File) error {
	path := o.keptAt(c, v)
	if path == "" {
		return nil
	}
	out := *f
	out.Accelerators, out.Spares, out.Whole = nil, nil, nil
	if err := out.WriteFile(path); err != nil {
		return err
	}
	return pruneKept(o.options.Measured)
}

// keptAt is the file that keeps a variant's measurements; "" where its content is not known or nothing is kept.
func (o *Opened) keptAt(c *profiler.Config, v serving.VariantID) string {
	if o.options.Measured == "" {
		return ""
	}
	digest, err := c.Digest(v)
	if err != nil || digest == "" {
		return ""
	}
	return filepath.Join(o.options.Measured, digest+".json")
}

// pruneKept removes the oldest files above maxKept.
func pruneKept(folder string) error {
	list, err := os.ReadDir(folder)
	if err != nil || len(list) <= maxKept {
		return err
	}
	written := make(map[string]int64, len(list))
	for _, x := range list {
		if st, err := x.Info(); err == nil {
			written[x.Name()] = st.ModTime().UnixNano()
		}
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return cmp.Compare(written[a.Name()], written[b.Name()]) })
	for _, x := range list[:len(list)-maxKept] {
		if err := os.Remove(filepath.Join(folder, x.Name())); err != nil {
			return err
		}
	}
	return nil
}
