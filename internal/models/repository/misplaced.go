package repository

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Misplaced says what lies in a folder of which nothing can be served, and how it is to lie or to be named.
func (r *Repository) Misplaced() string {
	const want = "want NAME/1/" + defaultFile
	entries, err := r.list(".")
	if err != nil {
		return err.Error()
	}
	var folders, files []string
	for _, name := range entries {
		switch st, err := r.root.Stat(name); {
		case err != nil:
		case st.IsDir():
			folders = append(folders, name)
		case path.Ext(name) == ".onnx":
			files = append(files, name)
		}
	}
	versions, _ := r.versions(".")
	_, number := strconv.Atoi(filepath.Base(r.dir))
	switch {
	case len(versions) > 0:
		return fmt.Sprintf("it is the folder of one model, with its versions: name the folder above, %s",
			filepath.Dir(r.dir))
	case slices.Contains(files, defaultFile) && number == nil:
		return fmt.Sprintf("it is one version of a model: name the folder of all models, %s",
			filepath.Dir(filepath.Dir(r.dir)))
	case len(files) > 0:
		return fmt.Sprintf("%s lies in it without a folder: %s, such as %s, or name the file itself", files[0], want,
			path.Join(strings.TrimSuffix(files[0], ".onnx"), "1", defaultFile))
	case len(folders) == 0:
		return "no model lies in it: " + want
	}
	return ""
}

// beside are words about other model files that lie where one is missing.
func (r *Repository) beside(at string) string {
	names, err := r.list(path.Dir(at))
	if err != nil {
		return ""
	}
	names = slices.DeleteFunc(names, func(name string) bool { return path.Ext(name) != ".onnx" })
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s lies there: rename it, or write default_model_filename: %q into %s", names[0], names[0],
		configFile)
}
