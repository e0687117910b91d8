package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
)

// Comment holds the comments of one struct.
type Comment struct {
	Text   string
	Fields map[string]string
}

// Comments reads the comments of the structs in Go files, by the names of the types, with their package and without. A
// field without a comment above it has the one behind it.
func Comments(t testing.TB, files ...string) map[string]Comment {
	t.Helper()
	out := map[string]Comment{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, x := range g.Specs {
				spec := x.(*ast.TypeSpec)
				if s, ok := spec.Type.(*ast.StructType); ok {
					c := comment(g.Doc, s)
					out[spec.Name.Name], out[file.Name.Name+"."+spec.Name.Name] = c, c
				}
			}
		}
	}
	return out
}

func comment(doc *ast.CommentGroup, s *ast.StructType) Comment {
	c := Comment{Text: strings.TrimSpace(doc.Text()), Fields: map[string]string{}}
	for _, f := range s.Fields.List {
		text := f.Doc
		if text == nil {
			text = f.Comment
		}
		for _, n := range f.Names {
			c.Fields[n.Name] = strings.TrimSpace(text.Text()) + defaultOf(f, text.Text())
		}
	}
	return c
}

// defaultOf says what a field's tag `default` has, where the comment does not.
func defaultOf(f *ast.Field, comment string) string {
	if f.Tag == nil || strings.Contains(comment, "Default: ") {
		return ""
	}
	text, ok := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Lookup("default")
	if !ok {
		return ""
	}
	if typ, ok := f.Type.(*ast.Ident); ok && typ.Name == "string" {
		text = "`" + text + "`"
	}
	return " Default: " + text + "."
}
