package python

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// frameworks are the packages that spare processes import: known ones that take long, do nothing else when they are
// imported, and start no work. A user's own packages are imported by models alone.
var frameworks = []string{
	"PIL", "catboost", "cv2", "jax", "joblib", "lightgbm", "onnxruntime", "pandas", "safetensors", "scipy",
	"sentence_transformers", "sklearn", "spacy", "tensorflow", "tokenizers", "torch", "torchaudio", "torchvision",
	"transformers", "xgboost",
}

// scanned is how much of a file is looked through for its imports, in bytes.
const scanned = 1 << 20

var importLine = regexp.MustCompile(`^\s*(?:import|from)\s+(\w+(?:\s*,\s*\w+)*)`)

// named lists the frameworks that a model names: those of its loader, or those that its file imports.
func named(m *Model) (out []string) {
	path := file(m.Source)
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil
	case info.IsDir():
		return []string{"torch", "transformers"}
	}
	if !strings.HasPrefix(m.Source, stored) {
		switch filepath.Ext(path) {
		case ".pt", ".pth", ".pt2":
			return []string{"torch"}
		case ".joblib":
			return []string{"joblib", "sklearn"}
		case ".json", ".ubj":
			return []string{"xgboost"}
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(io.LimitReader(f, scanned))
	for lines.Scan() {
		if found := importLine.FindStringSubmatch(lines.Text()); found != nil {
			for _, name := range strings.Split(found[1], ",") {
				if name = strings.TrimSpace(name); slices.Contains(frameworks, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// stored begins the source of a deployed file; see sluice_worker/model.py.
const stored = "stored:"

// Stored is the source of a file of Python that was handed over alone, with the name of a class in it; "" is its only
// one.
func Stored(path, class string) string { return stored + path + ":" + class }

// file returns the file or folder of a source.
func file(source string) string {
	if rest, ok := strings.CutPrefix(source, stored); ok {
		return rest[:max(0, strings.LastIndexByte(rest, ':'))]
	}
	if at := strings.LastIndex(source, ".py:"); at >= 0 {
		return source[:at+len(".py")]
	}
	return source
}

// shadows reports whether a model would import something of its own in a framework's place: a file or folder of that
// name lies beside it. Deployed files do not see what lies beside them.
func shadows(m *Model, names []string) bool {
	if strings.HasPrefix(m.Source, stored) {
		return false
	}
	dir := filepath.Dir(file(m.Source))
	return slices.ContainsFunc(names, func(name string) bool {
		for _, path := range []string{name, name + ".py"} {
			if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
				return true
			}
		}
		return false
	})
}

// packagesOf lists the packages of modules.
func packagesOf(modules []string) (out []string) {
	for _, m := range modules {
		name, _, _ := strings.Cut(m, ".")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
