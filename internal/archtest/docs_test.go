package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestArchitectureNamesEveryFloor keeps the page that people read beside the table that counts.
func TestArchitectureNamesEveryFloor(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ ([0-8])  (.*)$`).FindAllStringSubmatch(string(page), -1)
	drawn, seen := map[string]int{}, map[string]bool{}
	for _, l := range lines {
		seen[l[1]] = true
		for _, word := range strings.Fields(l[2]) {
			drawn[word] = int(l[1][0] - '0')
		}
	}
	if len(seen) != 9 {
		t.Fatalf("found %d floors in ARCHITECTURE.md, want 9", len(seen))
	}
	for _, r := range floors {
		name := strings.TrimSuffix(r.pattern, "/...")
		if floor, ok := drawn[name]; !ok || floor != r.floor {
			t.Errorf("%s stands on floor %d; the floors drawn in ARCHITECTURE.md do not say so", name, r.floor)
		}
	}
}

// root is the top of the checkout.
var root = filepath.Join("..", "..")

// pages are the project's Markdown files, as paths from its root.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".tools", ".cache", "node_modules", "bin", "out"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".md" {
			rel, err := filepath.Rel(root, path)
			out = append(out, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found only the pages %v", out)
	}
	return out
}

// prose calls f with every line of a page that is not inside a block of code, and with its number.
func prose(t *testing.T, page string, f func(number int, line string)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	block := false
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			block = !block
		} else if !block {
			f(i+1, line)
		}
	}
	if block {
		t.Errorf("%s: a block of code does not end", page)
	}
}

// link is a link of Markdown, with where it leads.
var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinksLead checks that what the project's pages link to within the tree is there.
func TestLinksLead(t *testing.T) {
	for _, page := range pages(t) {
		prose(t, page, func(n int, line string) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s:%d links to %s, which is not there", page, n, m[1])
				}
			}
		})
	}
}

// TestAnchorsLead checks that a link to a heading of a page leads to one.
func TestAnchorsLead(t *testing.T) {
	anchor := regexp.MustCompile(`\]\(([^)#:]*)#([^)]*)\)`)
	for _, page := range pages(t) {
		prose(t, page, func(n int, line string) {
			for _, m := range anchor.FindAllStringSubmatch(line, -1) {
				to := page
				if m[1] != "" {
					to = filepath.Join(filepath.Dir(page), m[1])
				}
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					continue // TestLinksLead says so
				}
				if !slices.Contains(headings(t, to), m[2]) {
					t.Errorf("%s:%d links to #%s of %s, which has no such heading", page, n, m[2], to)
				}
			}
		})
	}
}

// headings are the anchors that a page's headings have.
func headings(t *testing.T, page string) []string {
	t.Helper()
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	var out []string
	prose(t, page, func(_ int, line string) {
		if head := strings.TrimLeft(line, "#"); head != line && strings.HasPrefix(head, " ") {
			out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(head[1:]), ""), " ", "-"))
		}
	})
	return out
}

// mostColumns is how long a line of a page may be. Tables may be longer, and so may blocks of code, which show files
// and what programs print; where a link leads does not count.
const mostColumns = 120

func TestLinesOfPagesAreShort(t *testing.T) {
	target := regexp.MustCompile(`\]\([^)]*\)`)
	for _, page := range pages(t) {
		prose(t, page, func(n int, line string) {
			if strings.HasPrefix(line, "|") {
				return
			}
			if got := utf8.RuneCountInString(target.ReplaceAllString(line, "]")); got > mostColumns {
				t.Errorf("%s:%d has %d characters, want at most %d", page, n, got, mostColumns)
			}
		})
	}
}

// TestNumbersHaveCommands refuses the sign that pages used for numbers that no command prints: such a number goes.
func TestNumbersHaveCommands(t *testing.T) {
	for _, page := range pages(t) {
		prose(t, page, func(n int, line string) {
			if strings.Contains(line, "†") {
				t.Errorf("%s:%d has a number that no command prints; name the command, or leave the number out",
					page, n)
			}
		})
	}
}

// foreign are the first elements of paths that are not the project's. Those with a dot in them are modules.
var foreign = []string{
	"out",     // what `sluice demo` writes
	"testing", // Go's
}

// TestNamedThingsExist checks what pages name in backquotes: a path of the project must be there, and so must a file, a
// test or a benchmark of the name. A name may stand for several (`policy/*`) or be one of a package's
// (`serving/profile.BatchLimit`).
func TestNamedThingsExist(t *testing.T) {
	files, tests := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && slices.Contains([]string{".git", ".tools", ".cache", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return err
		}
		files[d.Name()] = true
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	path := regexp.MustCompile(`^[a-z][a-z0-9_.*-]*(/[A-Za-z0-9_.*-]+)+/?$`)
	placeholder := regexp.MustCompile(`/[A-Z0-9]+(/|\.|$)`) // for the reader to fill in
	symbol := regexp.MustCompile(`\.[A-Z]\w*(\.\w+)?$`)
	test := regexp.MustCompile(`^(?:[a-z/]+\.)?((?:Test|Benchmark|Fuzz)[A-Z]\w*)$`)
	named := 0
	for _, page := range pages(t) {
		if strings.Contains(page, "/data/") || strings.Contains(page, "/testdata/") {
			continue // where data come from: paths of other projects
		}
		prose(t, page, func(n int, line string) {
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				name := m[1]
				switch {
				case test.MatchString(name):
					named++
					if at := test.FindStringSubmatch(name)[1]; !tests[at] {
						t.Errorf("%s:%d names `%s`; there is no such test", page, n, at)
					}
				case strings.HasSuffix(name, ".go") && !strings.ContainsAny(name, "/ *"):
					named++
					if !files[name] {
						t.Errorf("%s:%d names `%s`; there is no such file", page, n, name)
					}
				case path.MatchString(name):
					first, _, _ := strings.Cut(name, "/")
					module := strings.Contains(first, ".")
					if slices.Contains(foreign, first) || module || placeholder.MatchString(name) {
						continue
					}
					named++
					at := symbol.ReplaceAllString(name, "")
					found, err := filepath.Glob(filepath.Join(root, at))
					if err != nil || len(found) == 0 {
						t.Errorf("%s:%d names `%s`, which is not there", page, n, name)
					}
				}
			}
		})
	}
	if named < 100 {
		t.Errorf("only %d names found", named)
	}
}

// TestTheGlossaryNamesEachWordOnce also checks that a meaning is one sentence.
func TestTheGlossaryNamesEachWordOnce(t *testing.T) {
	row := regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	seen := map[string]bool{}
	prose(t, "docs/glossary.md", func(n int, line string) {
		m := row.FindStringSubmatch(line)
		if m == nil || m[1] == "word" || m[1] == "---" {
			return
		}
		if seen[m[1]] {
			t.Errorf("line %d: %q stands twice", n, m[1])
		}
		seen[m[1]] = true
		if !strings.HasSuffix(m[2], ".") || strings.Contains(m[2], ". ") {
			t.Errorf("line %d: %q is not one sentence", n, m[2])
		}
	})
	if len(seen) < 30 || len(seen) > 50 { // one screen: words of one page alone are explained there
		t.Errorf("%d words", len(seen))
	}
}

// TestCommandsOfPagesRunSomething checks the commands `go test` in backquotes: the packages that one names have a test
// that its -run names, or a benchmark that its -bench names.
func TestCommandsOfPagesRunSomething(t *testing.T) {
	command := regexp.MustCompile("`go test ([^`]+)`")
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(strings.Join(strings.Fields(string(text)), " "), -1) {
			words, kind, name := strings.Fields(m[1]), "Test", ""
			if at := slices.Index(words, "-bench"); at >= 0 {
				kind, name = "Benchmark", words[at+1]
			} else if at := slices.Index(words, "-run"); at >= 0 {
				name = words[at+1]
			}
			if name == "" || name == "NAME" { // for the reader to fill in
				continue
			}
			name, _, _ = strings.Cut(strings.Trim(name, "'"), "/")
			matches, runs := regexp.MustCompile(name), false
			for _, word := range words {
				if strings.HasPrefix(word, "./") {
					runs = runs || slices.ContainsFunc(tests(t, word, kind), matches.MatchString)
				}
			}
			if found++; !runs {
				t.Errorf("%s: `go test %s` runs nothing", page, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d commands", found)
	}
}

// tests are the names of a kind of tests in a folder of the project or of its operator. A folder ./a/... stands for
// those below it, too.
func tests(t *testing.T, folder, kind string) (names []string) {
	t.Helper()
	folder, deep := strings.CutSuffix(folder, "...")
	declared := regexp.MustCompile(`(?m)^func (` + kind + `\w+)\(`)
	for _, module := range []string{root, filepath.Join(root, "operator")} {
		top := filepath.Join(module, folder)
		if _, err := os.Stat(top); err != nil {
			continue // of the other module
		}
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != top && !deep:
				return fs.SkipDir
			case !strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
