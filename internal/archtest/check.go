package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// ours, as a target pattern, matches every package of this module.
const ours = "(ours)"

// Violation is one broken rule: where, what, and why the rule exists.
type Violation struct{ At, What, Why string }

func (v Violation) String() string { return fmt.Sprintf("%s: %s\n\tbecause %s", v.At, v.What, v.Why) }

// Check returns the violations of this package's tables by the packages.
func Check(pkgs []Package) []Violation {
	return append(check(floors, pkgs), unused(pkgs, unbanned, sameFloor, paperFiles)...)
}

// unused returns the exceptions that no import needs.
func unused(pkgs []Package, unbanned, sameFloor []edge, paperFiles []string) (out []Violation) {
	report := func(at, table string) {
		out = append(out, Violation{
			at, "no import needs this; remove it from " + table + " in internal/archtest/table.go",
			"an exception that nobody needs hides the next import that should not be",
		})
	}
	imported := func(like func(from, to, at string) bool) bool {
		return slices.ContainsFunc(pkgs, func(p Package) bool {
			return slices.ContainsFunc(p.Imports, func(u Use) bool {
				return like(p.Path, strings.TrimPrefix(u.Name, Module+"/"), u.At)
			})
		})
	}
	for _, e := range unbanned {
		if !imported(func(from, to, _ string) bool { return match(e.from, from) && match(e.to, to) }) {
			report(e.from+" -> "+e.to, "unbanned")
		}
	}
	for _, e := range sameFloor {
		if !imported(func(from, to, _ string) bool {
			return folder(from) != folder(to) && match(e.from, from) && match(e.to, to)
		}) {
			report(e.from+" -> "+e.to, "sameFloor")
		}
	}
	for _, name := range paperFiles {
		if !imported(func(from, to, at string) bool {
			return from == systemsPackage && match("papers/...", to) && fileOf(at) == name
		}) {
			report(systemsPackage+"/"+name, "paperFiles")
		}
	}
	return out
}

// fileOf returns the name of the file of Use.At.
func fileOf(at string) string {
	name, _, _ := strings.Cut(path.Base(at), ":")
	return name
}

func check(table []row, pkgs []Package) []Violation {
	var out []Violation
	report := func(at, why, format string, args ...any) {
		out = append(out, Violation{at, fmt.Sprintf(format, args...), why})
	}
	found := make([]bool, len(table))
	for _, p := range pkgs {
		if n := len(p.Comments); n != 1 {
			report(p.Path, "godoc shows one comment per package, and it is where a newcomer starts reading",
				"package has %d package comments %v; write exactly one, in one file", n, p.Comments)
		}
		i := placeOf(table, p.Path)
		if i >= 0 {
			found[i] = true
		} else {
			if placeOf(exempt, p.Path) < 0 {
				report(p.Path, "a package without a floor has no direction",
					"package stands on no floor; add a row to floors in internal/archtest/table.go and to "+
						"ARCHITECTURE.md")
			}
			continue
		}
		floor := table[i].floor
		for _, imp := range p.Imports {
			checkImport(table, p.Path, floor, imp, report)
		}
		if floor <= pureFloors {
			checkPure(p, report)
		}
		if match("engine/...", p.Path) {
			for _, use := range p.Names {
				to, mine := strings.CutPrefix(use.From, Module+"/")
				if mine && slices.Contains(ports, to) && strings.HasPrefix(use.Name, "New") {
					report(use.At, whyPorts, "%s constructs a rule: %s.%s", p.Path, path.Base(to), use.Name)
				}
			}
		}
	}
	for i, r := range table {
		switch {
		case found[i] && r.planned:
			report(r.pattern, "the table must not call planned what is there",
				"a package stands here now; drop its planned mark in internal/archtest/table.go")
		case !found[i] && !r.planned:
			report(r.pattern, "a row that matches nothing guards nothing",
				"no package stands here; mark the row planned in internal/archtest/table.go, or remove it")
		}
	}
	return out
}

func checkImport(table []row, from string, floor int, imp Use, report func(at, why, format string, args ...any)) {
	to, mine := strings.CutPrefix(imp.Name, Module+"/")
	for _, b := range bans {
		if !matchAny(b.from, from) || b.self && (to == from || strings.HasPrefix(to, from+"/")) {
			continue
		}
		hit := matchAny(b.to, to) || mine && slices.Contains(b.to, ours)
		if hit && !matchAny(b.except, to) && !listed(unbanned, from, to) {
			report(imp.At, b.why, "%s may not import %s", from, to)
			return
		}
	}
	if !mine {
		return
	}
	if from == systemsPackage && match("papers/...", to) && !slices.Contains(paperFiles, fileOf(imp.At)) {
		report(imp.At, whyPaperFiles, "%s may not import %s here, but in a paper's file (paperFiles)", from, to)
		return
	}
	i := placeOf(table, to)
	if i < 0 {
		if placeOf(exempt, to) >= 0 {
			report(imp.At, "test helpers do not ship", "%s imports %s outside a test", from, to)
		}
		return // a package without a floor is reported once, where it stands
	}
	switch above := table[i].floor; {
	case above > floor:
		report(imp.At, "imports point down only: what decides must not depend on what drives it",
			"%s (floor %d) imports %s (floor %d)", from, floor, to, above)
	case above == floor && folder(from) != folder(to) && !listed(sameFloor, from, to):
		report(imp.At,
			"neighbours on a floor are blind to each other, so that each can be understood and replaced alone; "+
				"move what both need down, or give the import a reason in sameFloor in internal/archtest/table.go",
			"%s and %s both stand on floor %d", from, to, floor)
	}
}

func checkPure(p Package, report func(at, why, format string, args ...any)) {
	for _, imp := range p.Imports {
		if matchAny(impure, imp.Name) {
			report(imp.At, whyPure, "%s may not import %s", p.Path, imp.Name)
		}
	}
	for _, e := range p.Effects {
		report(e.At, whyPure, "%s contains %s", p.Path, e.Name)
	}
	for _, use := range p.Names {
		if l, ok := limited[use.From]; ok && !slices.Contains(l.names, use.Name) {
			report(use.At, l.why, "%s uses %s of package %s", p.Path, use.Name, use.From)
		}
	}
}

// placeOf returns the index of the row with the longest pattern that matches, or -1.
func placeOf(table []row, pkg string) int {
	best := -1
	for i, r := range table {
		if match(r.pattern, pkg) && (best < 0 || len(r.pattern) > len(table[best].pattern)) {
			best = i
		}
	}
	return best
}

// match reports whether a package path meets a pattern: "a/b" is that package, "a/*" those one level below a, "a/*/b"
// the package b of each of these, and "a/..." a itself with all below it. "..." alone is every package.
func match(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	}
	ok, err := path.Match(pattern, pkg) // a star crosses no slash
	return ok && err == nil
}

func matchAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, pkg) })
}

func listed(edges []edge, from, to string) bool {
	return slices.ContainsFunc(edges, func(e edge) bool { return match(e.from, from) && match(e.to, to) })
}

// folder returns the folder of a package that counts for rules between folders: the shortest beginning of its path that
// does not only group.
func folder(pkg string) string {
	for i := range pkg {
		if pkg[i] == '/' && !slices.Contains(groups, pkg[:i]) {
			return pkg[:i]
		}
	}
	return pkg
}
