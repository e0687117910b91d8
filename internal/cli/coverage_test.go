package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// papersPages is the folder of the papers' pages.
var papersPages = filepath.Join("..", "..", "docs", "papers")

// commandsOn returns the commands of the program in backquotes on a text, without the program's name.
func commandsOn(text string) (out [][]string) {
	text = strings.Join(strings.Fields(text), " ") // a command may go on in the next line
	for _, m := range regexp.MustCompile("`sluice ([^`]+)`").FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Fields(m[1]))
	}
	return out
}

// experiments returns the paper and the figures that a command runs.
func experiments(command []string) (paper string, figures []string) {
	if command[0] != "reproduce" || len(command) < 2 || strings.HasPrefix(command[1], "-") {
		return "", nil
	}
	for _, word := range command[2:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		figures = append(figures, word)
	}
	return command[1], figures
}

// Every command of the program on the papers' pages exists, with its flags, its paper and its figures.
func TestCommandsOnThePapersPagesExist(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(papersPages, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, command := range commandsOn(readText(t, page)) {
			found++
			if code, _, errs := sluice(t, append(slices.Clone(command), "--help")...); code != ExitOK {
				t.Errorf("%s: sluice %s: %s", page, strings.Join(command, " "), errs)
			}
			name, figures := experiments(command)
			if name == "" {
				continue
			}
			at := slices.IndexFunc(papers, func(p reproduce.Paper) bool { return p.Name == name })
			if at < 0 {
				t.Errorf("%s: sluice %s: there is no such paper", page, strings.Join(command, " "))
			} else if err := papers[at].Check(figures); err != nil {
				t.Errorf("%s: sluice %s: %v", page, strings.Join(command, " "), err)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d commands", found)
	}
}

// coverageRow is a row of docs/papers/coverage.md.
type coverageRow struct {
	page                               string // of the paper
	experiment                         bool   // a mechanism otherwise
	what, where, state, runs, remarked string
}

// coverage returns the rows of docs/papers/coverage.md.
func coverage(t *testing.T) (rows []coverageRow) {
	t.Helper()
	var in coverageRow
	link := regexp.MustCompile(`^\[[a-z]+\.md\]\(([^)]+)\)`)
	for _, line := range strings.Split(readText(t, filepath.Join(papersPages, "coverage.md")), "\n") {
		if m := link.FindStringSubmatch(line); m != nil {
			in.page = m[1]
		}
		if strings.HasPrefix(line, "### ") {
			in.experiment = line == "### Experiments"
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 5 || strings.HasPrefix(line, "| ---") ||
			strings.HasPrefix(line, "| what |") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		r := in
		r.what, r.where, r.state, r.runs, r.remarked = cells[0], cells[1], cells[2], cells[3], cells[4]
		rows = append(rows, r)
	}
	return rows
}

// coverage.md has a row with a command for each experiment that the program knows. A row says what its state means:
// what is there has a command or code, what is not says nothing that could be run, and what needs an accelerator is
// named in the first ten lines of its paper's page.
func TestCoverageNamesEveryExperiment(t *testing.T) {
	rows, named := coverage(t), make(map[string]bool)
	for _, r := range rows {
		has := strings.Contains(r.runs, "`")
		switch r.state {
		case "works", "partly", "otherwise":
			if !has {
				t.Errorf("%s, %s: the state is %q, and no command or code is named", r.page, r.what, r.state)
			}
		case "not":
			if has {
				t.Errorf("%s, %s: the state is %q, and %s is named", r.page, r.what, r.state, r.runs)
			}
		case "accelerator":
			top := strings.SplitN(readText(t, filepath.Join(papersPages, r.page)), "\n", 11)
			if r.experiment && !strings.Contains(strings.Join(top[:10], " "), r.where) {
				t.Errorf("the first ten lines of %s do not name %s, which needs an accelerator", r.page, r.where)
			}
		default:
			t.Errorf("%s, %s: the state is %q", r.page, r.what, r.state)
		}
		for _, command := range commandsOn(r.runs) {
			paper, figures := experiments(command)
			for _, f := range figures {
				named[paper+" "+f] = r.experiment
			}
		}
	}
	for _, p := range papers {
		for _, f := range p.Figures {
			if !named[p.Name+" "+f.Name] {
				t.Errorf("coverage.md has no row of an experiment for `sluice reproduce %s %s`", p.Name, f.Name)
			}
		}
	}
	if len(rows) < 200 {
		t.Errorf("found only %d rows", len(rows))
	}
}
