// Package maporder finds loops over maps whose result depends on the order of the map, which Go changes from run to
// run. Equal inputs must give equal bytes: rows of figures, plans and journals are compared byte for byte.
//
// A loop is reported when its body adds to a floating-point number or a string that outlives the loop, because rounding
// and concatenation depend on the order. It is also reported when its body appends to a slice that outlives the loop
// and that the function does not sort afterwards. An element that is indexed by the key of the loop is a result of one
// iteration alone and is not reported.
//
// A comment "any order: REASON" at the end of the loop's first line, or alone on the line before it, allows a loop.
package maporder

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// Package is a type-checked package. Info needs Types, Defs and Uses.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
}

// marker begins the comment that allows a loop.
const marker = "any order:"

// Check returns a line "FILE:LINE: WHAT" for every loop that depends on the order of a map, in the order of files.
func (p *Package) Check() []string {
	var out []string
	for _, f := range p.Files {
		allowed := p.allowedLines(f)
		var functions []ast.Node // that enclose the node, the innermost last
		var visit func(n ast.Node) bool
		visit = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				functions = append(functions, n)
				ast.Inspect(body(n), visit)
				functions = functions[:len(functions)-1]
				return false
			case *ast.RangeStmt:
				line := p.Fset.Position(n.Pos()).Line
				if len(functions) > 0 && p.overMap(n.X) && !allowed[line] && !allowed[line-1] {
					out = append(out, p.checkLoop(n, functions[len(functions)-1])...)
				}
			}
			return true
		}
		ast.Inspect(f, visit)
	}
	return out
}

func body(function ast.Node) ast.Node {
	switch f := function.(type) {
	case *ast.FuncDecl:
		if f.Body != nil {
			return f.Body
		}
	case *ast.FuncLit:
		return f.Body
	}
	return &ast.BlockStmt{}
}

// allowedLines returns the lines that end in a marker with a reason.
func (p *Package) allowedLines(f *ast.File) map[int]bool {
	out := make(map[int]bool)
	for _, g := range f.Comments {
		text := g.Text()
		if at := strings.Index(text, marker); at >= 0 && strings.TrimSpace(text[at+len(marker):]) != "" {
			out[p.Fset.Position(g.End()).Line] = true
		}
	}
	return out
}

// overMap reports whether an expression that is ranged over is a map, or an iterator of package maps over one.
func (p *Package) overMap(x ast.Expr) bool {
	if t := p.Info.TypeOf(x); t != nil {
		if _, ok := t.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := p.callee(call).(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == "maps" && f.Signature().Results().Len() == 1 &&
		(f.Name() == "Keys" || f.Name() == "Values" || f.Name() == "All")
}

func (p *Package) callee(call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return p.Info.Uses[f]
	case *ast.SelectorExpr:
		return p.Info.Uses[f.Sel]
	}
	return nil
}

// checkLoop reports the statements of one loop that depend on its order.
func (p *Package) checkLoop(loop *ast.RangeStmt, function ast.Node) (out []string) {
	report := func(n ast.Node, format string, args ...any) {
		at := p.Fset.Position(n.Pos())
		out = append(out, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, fmt.Sprintf(format, args...)))
	}
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			if p.ownElement(left, loop) {
				continue
			}
			var right ast.Expr
			if len(assign.Rhs) == len(assign.Lhs) {
				right = assign.Rhs[i]
			}
			switch {
			case p.accumulates(assign.Tok, left, right):
				report(assign, "%s is accumulated in the order of a map", types.ExprString(left))
			case p.appends(left, right) && !p.sortedAfter(left, loop, function):
				report(assign, "%s is appended to in the order of a map and not sorted afterwards",
					types.ExprString(left))
			}
		}
		return true
	})
	return out
}

// ownElement reports whether an assignment to x concerns one iteration alone: x belongs to a variable declared in the
// loop, or is the element of a container at the loop's key.
func (p *Package) ownElement(x ast.Expr, loop *ast.RangeStmt) bool {
	key, _ := loop.Key.(*ast.Ident)
	for {
		switch e := ast.Unparen(x).(type) {
		case *ast.Ident:
			o := p.Info.ObjectOf(e)
			return o == nil || o.Pos() >= loop.Pos() && o.Pos() < loop.End()
		case *ast.IndexExpr:
			if i, ok := ast.Unparen(e.Index).(*ast.Ident); ok && key != nil &&
				p.Info.ObjectOf(i) == p.Info.ObjectOf(key) {
				return true
			}
			x = e.X
		case *ast.SelectorExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		default:
			return false
		}
	}
}

// accumulates reports whether an assignment combines the old value of left, a floating-point number or a string, with
// another one.
func (p *Package) accumulates(op token.Token, left, right ast.Expr) bool {
	t := p.Info.TypeOf(left)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	if !ok || b.Info()&(types.IsFloat|types.IsComplex|types.IsString) == 0 {
		return false
	}
	switch op {
	case token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.QUO_ASSIGN:
		return true
	case token.ASSIGN:
		return right != nil && p.combines(right, types.ExprString(left))
	}
	return false
}

// combines reports whether an expression is an arithmetic one with the operand name.
func (p *Package) combines(x ast.Expr, name string) bool {
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	switch b.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO:
	default:
		return false
	}
	for _, operand := range []ast.Expr{b.X, b.Y} {
		if types.ExprString(ast.Unparen(operand)) == name || p.combines(operand, name) {
			return true
		}
	}
	return false
}

// appends reports whether an assignment is left = append(left, ...).
func (p *Package) appends(left, right ast.Expr) bool {
	call, ok := right.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	f, ok := call.Fun.(*ast.Ident)
	if !ok || f.Name != "append" {
		return false
	}
	_, builtin := p.Info.Uses[f].(*types.Builtin)
	return builtin && types.ExprString(call.Args[0]) == types.ExprString(left)
}

// sortedAfter reports whether the function passes x, after the loop, to a function whose name contains Sort, or to one
// of package sort.
func (p *Package) sortedAfter(x ast.Expr, loop *ast.RangeStmt, function ast.Node) bool {
	name, found := types.ExprString(x), false
	ast.Inspect(body(function), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Pos() < loop.End() || len(call.Args) == 0 {
			return true
		}
		f := p.callee(call)
		if f == nil {
			return true
		}
		sorts := strings.Contains(strings.ToLower(f.Name()), "sort") || f.Pkg() != nil && f.Pkg().Path() == "sort"
		if sorts && types.ExprString(call.Args[0]) == name {
			found = true
		}
		return !found
	})
	return found
}
