package maporder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listed is a package as "go list" describes it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
	Error                   *struct{ Err string }
}

// Load type-checks the packages that patterns name, without their tests, in folder dir of a module. Imports are read
// from compiled export data, so it runs "go list -export", which compiles what is not in the build cache.
func Load(ctx context.Context, dir string, patterns ...string) ([]*Package, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-export", "-deps", "-json"}, patterns...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("maporder: go list: %w", err)
	}
	exports := make(map[string]string)
	var targets []listed
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("maporder: go list: %w", err)
		}
		if p.Error != nil {
			return nil, fmt.Errorf("maporder: %s: %s", p.ImportPath, p.Error.Err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			targets = append(targets, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var out []*Package
	for _, t := range targets {
		p := &Package{Fset: fset, Info: &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object),
			Uses: make(map[*ast.Ident]types.Object),
		}}
		for _, name := range slices.Concat(t.GoFiles, t.CgoFiles) {
			f, err := parser.ParseFile(fset, filepath.Join(t.Dir, name), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			p.Files = append(p.Files, f)
		}
		// Names of C are passed over: no map is among them.
		config := types.Config{FakeImportC: true, Importer: imports}
		if _, err := config.Check(t.ImportPath, fset, p.Files, p.Info); err != nil {
			return nil, fmt.Errorf("maporder: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
