package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// owners are the types that the engine is made of, the highest first. A type knows those below it and none above.
var owners = []string{
	"Engine", "caps", "replanning", "dispatch", "handover", "lifecycle", "machines", "keepWarm", "instances",
	"queries", "streams", "flows", "shares", "doubts", "records", "content", "admission", "beliefs", "lengths",
	"backoff", "health", "faults", "places", "inForce", "usage", "agenda", "decisions", "world",
}

// Calls run downwards: neither the tables of an owner nor its methods know the type of a higher one, so that they
// cannot call it. Every owner has a place in the order.
func TestOwnersKnowOnlyThoseBelow(t *testing.T) {
	embeds := 0
	for _, f := range parse(t) {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						if embedsWorld(s) {
							embeds++
							if !slices.Contains(owners, s.Name.Name) {
								t.Errorf("%s embeds the world and has no place among the owners", s.Name.Name)
							}
						}
						below(t, s.Name.Name, "its tables", s.Type)
					}
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					below(t, typeName(d.Recv.List[0].Type), "its method "+d.Name.Name, d)
				}
			}
		}
	}
	if embeds < 15 {
		t.Errorf("%d types embed the world: does this test still see the owners?", embeds)
	}
}

// below reports every owner above the one named that an expression, a declaration or a body names as a type.
func below(t *testing.T, name, where string, n ast.Node) {
	rank := slices.Index(owners, name)
	if rank < 0 {
		return
	}
	check := func(x ast.Expr) {
		if other := slices.Index(owners, typeName(x)); other >= 0 && other < rank {
			t.Errorf("%s: %s knows %s, which is above it", name, where, owners[other])
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			check(n.Type)
		case *ast.CompositeLit:
			check(n.Type)
		case *ast.ValueSpec:
			check(n.Type)
		case *ast.TypeAssertExpr:
			check(n.Type)
		case *ast.CallExpr: // a conversion, or new
			check(n.Fun)
			for _, a := range n.Args {
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "new" || id.Name == "make") {
					check(a)
				}
			}
		}
		return true
	})
}

// typeName is the name behind pointers, slices and maps; "" for what has none.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.ParenExpr:
		return typeName(x.X)
	case *ast.ArrayType:
		return typeName(x.Elt)
	case *ast.MapType:
		return typeName(x.Value)
	}
	return ""
}

func embedsWorld(s *ast.TypeSpec) bool {
	x, ok := s.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(x.Fields.List, func(f *ast.Field) bool {
		return len(f.Names) == 0 && typeName(f.Type) == "world"
	})
}

// The engine calls its owners in order and has no tables itself.
func TestEngineHasOnlyOwners(t *testing.T) {
	e := reflect.TypeFor[Engine]()
	if e.NumField() > 16 {
		t.Errorf("%d fields: do they still fit on a screen?", e.NumField())
	}
	for k := range e.NumField() {
		f := e.Field(k)
		if f.Type.Kind() != reflect.Pointer || !slices.Contains(owners, f.Type.Elem().Name()) {
			t.Errorf("the field %s is no owner", f.Name)
		}
	}
}

// parse returns the files of the package but for its tests.
func parse(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
