package render

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/resources"
	"github.com/sluice-serving/sluice/operator/cell"
)

// check returns what keeps a dispatcher from serving a configuration: config.Problems, or another error; nil for
// nothing.
func check(text []byte) error {
	f, err := config.Parse(text, cell.KeyConfig)
	if err != nil {
		return err
	}
	_, err = host.OpenFile(f, host.Options{})
	return err
}

// problemPath finds the app or device type that a problem is of.
var problemPath = regexp.MustCompile(`^(apps|device_types|workers)\[(\d+)\]\.?(.*)$`)

// refuse leaves out the apps and machine types that problems are of, and reports whether there were any.
func (r *rendering) refuse(err error) (again bool, _ error) {
	if err == nil {
		return false, nil
	}
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return false, fmt.Errorf("the fleet's configuration: %w", err)
	}
	for _, p := range problems {
		m := problemPath.FindStringSubmatch(p.Path)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil:
		case m[1] == "apps" && n < len(r.apps):
			path, _ := resources.Path(config.App{}, m[3])
			again = r.note(r.out.RefusedApps, r.apps[n].Name, path, p.Text) || again
		case m[1] == "device_types" && n < len(r.types):
			path, _ := resources.Path(config.DeviceType{}, m[3])
			again = r.note(r.out.RefusedTypes, r.types[n].Name, r.partPath(n)+path, p.Text) || again
		}
	}
	if !again {
		path, _ := resources.Path(config.File{}, problems[0].Path)
		if in, ok := strings.CutPrefix(problems[0].Path, "system."); ok {
			path, _ = resources.Path(config.System{}, in) // the fleet's own fields
		}
		return false, fmt.Errorf("the fleet cannot be used: %s",
			sentence(path, problems[0].Text))
	}
	return true, nil
}

// note keeps the first problem of a name.
func (r *rendering) note(refused map[string]string, name, path, text string) bool {
	if refused[name] == "" {
		if path != "" {
			path = "spec." + path
		}
		refused[name] = sentence(path, r.explained(text))
	}
	return true
}

// partPath is where the n-th device type is written in its machine type's spec: "" for the machine itself.
func (r *rendering) partPath(n int) string {
	first := slices.Index(r.types, r.types[n])
	if n == first {
		return ""
	}
	return fmt.Sprintf("parts[%d].", n-first-1)
}

// mentioned finds entries of the configuration that a text speaks of.
var mentioned = regexp.MustCompile(`(apps|device_types)\[(\d+)\]`)

// explained names the resources in place of the configuration's entries.
func (r *rendering) explained(text string) string {
	return mentioned.ReplaceAllStringFunc(text, func(found string) string {
		m := mentioned.FindStringSubmatch(found)
		n, err := strconv.Atoi(m[2])
		switch {
		case err == nil && m[1] == "apps" && n < len(r.apps):
			return fmt.Sprintf("app %q", r.apps[n].Name)
		case err == nil && m[1] == "device_types" && n < len(r.types):
			return fmt.Sprintf("machine type %q", r.types[n].Name)
		}
		return found
	})
}

// sentence says a problem with a field of the resource.
func sentence(path, text string) string {
	if path == "" {
		return text
	}
	return path + " " + text
}

// sorted returns a list by name.
func sorted[T client.Object](list []T) []T {
	return slices.SortedFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
}
