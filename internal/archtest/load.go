package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Package is one folder of Go files, as far as the rules need it.
type Package struct {
	Path     string   // relative to the module's root; "." for the root itself
	Imports  []Use    // imports of files that are not tests; Name is the import path
	Names    []Use    // selectors on imported packages: From is the import path, Name the selected name
	Effects  []Use    // statements and types that start or join goroutines; Name says which
	Comments []string // the files that carry a package comment
}

// Use is one place where a file refers to something.
type Use struct {
	From, Name string
	At         string // file:line
}

// Load parses every package of the tree. Of files that do not parse, the part before the error counts.
func Load(tree fs.FS) ([]Package, error) {
	byPath := map[string]*contents{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipped(tree, name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !d.Type().IsRegular() {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byPath[dir] == nil {
			byPath[dir] = &contents{Package: Package{Path: dir}}
		}
		return byPath[dir].add(name, src)
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: reading the tree: %w", err)
	}
	var out []Package
	for _, f := range byPath {
		if f.files == 0 && f.tests == 0 {
			continue // nothing but files that no build includes
		}
		if f.files == 0 { // only tests; one of them may have the package comment
			f.Comments = f.testComments
		}
		out = append(out, f.Package)
	}
	slices.SortFunc(out, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// skipped reports whether the go command would not look into the folder either, or it is a module of its own.
func skipped(tree fs.FS, name, base string) bool {
	if base == "testdata" || base == "node_modules" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(tree, path.Join(name, "go.mod"))
	return err == nil
}

type contents struct {
	Package
	files, tests int
	testComments []string
}

func (f *contents) add(name string, src []byte) error {
	fset := token.NewFileSet()
	file, _ := parser.ParseFile(fset, name, src, parser.ParseComments)
	if file == nil || ignored(file) {
		return nil
	}
	commented := file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != ""
	if strings.HasSuffix(name, "_test.go") {
		f.tests++
		if commented {
			f.testComments = append(f.testComments, name)
		}
		return nil
	}
	f.files++
	if commented {
		f.Comments = append(f.Comments, name)
	}
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", name, fset.Position(n.Pos()).Line) }
	local := map[string]string{} // name in this file -> import path
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		f.Imports = append(f.Imports, Use{Name: p, At: at(spec)})
		as := defaultName(p)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if as == "." {
			f.Names = append(f.Names, Use{From: p, Name: "everything (a dot import)", At: at(spec)})
		}
		local[as] = p
	}
	effect := func(n ast.Node, what string) { f.Effects = append(f.Effects, Use{Name: what, At: at(n)}) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			effect(n, "a go statement")
		case *ast.ChanType:
			effect(n, "a chan type")
		case *ast.SelectStmt:
			effect(n, "a select statement")
		case *ast.SendStmt:
			effect(n, "a channel send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				effect(n, "a channel receive")
			}
		case *ast.SelectorExpr:
			// An identifier that the parser resolved is a variable of this file that hides the import.
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && local[x.Name] != "" {
				f.Names = append(f.Names, Use{From: local[x.Name], Name: n.Sel.Name, At: at(n)})
			}
		}
		return true
	})
	return nil
}

// ignored reports whether the file has the build tag ignore.
func ignored(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			return false
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err == nil && !expr.Eval(func(tag string) bool { return tag != "ignore" }) {
				return true
			}
		}
	}
	return false
}

// defaultName guesses the name of a package from its path, as goimports does: the last element that is no major
// version.
func defaultName(p string) string {
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(p))
	}
	return base
}
