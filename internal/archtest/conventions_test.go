package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The files that code hosts read are read by nothing here, so these tests hold them against the tree. `make workflows`
// has actionlint check the syntax of workflows.

// readYAML reads a file of the tree into a value, which has all of its fields.
func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	f, err := os.Open(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := yaml.NewDecoder(f).Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Strategy struct{ Matrix struct{ Target []string } }
		Steps    []struct{ Uses, Run string }
	}
}

// What workflows run are targets of the Makefile, so that everybody can run it. Actions of others are pinned by digest,
// with their version for readers. Nobody may write but the job that says so.
func TestWorkflowsRunTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	isTarget := func(name string) bool {
		return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `:`).Match(makefile)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v\d`)
	called := regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	seen := map[string]bool{}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		readYAML(t, name, &w)
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: its permissions are %v, want {contents: read}; give more to a job alone", name, w.Permissions)
		}
		for job, j := range w.Jobs {
			targets := strings.Fields(strings.Join(j.Strategy.Matrix.Target, " "))
			for _, step := range j.Steps {
				for _, m := range called.FindAllStringSubmatch(step.Run, -1) {
					targets = append(targets, m[1])
				}
			}
			for _, target := range targets {
				if !strings.Contains(target, "=") && !isTarget(target) {
					t.Errorf("%s: job %s makes %q, which the Makefile does not have", name, job, target)
				}
				seen[target] = true
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s:%d: pin the action by a commit's digest, with its version behind #", name, i+1)
			}
		}
	}
	for _, target := range []string{"lint", "test", "race", "release"} {
		if !seen[target] {
			t.Errorf("no workflow makes %s", target)
		}
	}
}

// Every folder with a list of dependencies is looked after.
func TestDependenciesAreUpdated(t *testing.T) {
	kinds := map[string]string{
		"go.mod": "gomod", "package-lock.json": "npm", "pyproject.toml": "pip", "Dockerfile": "docker",
	}
	want := map[string]bool{"github-actions /": true}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		skip := []string{".git", ".tools", ".cache", "node_modules", "bin", "out", "testdata"}
		if d.IsDir() && slices.Contains(skip, d.Name()) {
			return fs.SkipDir
		}
		if kind := kinds[d.Name()]; kind != "" {
			rel, err := filepath.Rel(root, filepath.Dir(p))
			want[kind+" "+path.Join("/", filepath.ToSlash(rel))] = true
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	readYAML(t, ".github/dependabot.yml", &file)
	for _, u := range file.Updates {
		for _, dir := range append(u.Directories, u.Directory) {
			if dir == "" {
				continue
			}
			if at := u.Ecosystem + " " + dir; !want[at] {
				t.Errorf("dependabot.yml looks after %s, which has no list of dependencies", at)
			}
			delete(want, u.Ecosystem+" "+dir)
		}
	}
	for at := range want {
		t.Errorf("dependabot.yml does not look after %s", at)
	}
}

// Owners are teams, and what they own is there.
func TestOwnersOwnSomething(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".github/CODEOWNERS"))
	if err != nil {
		t.Fatal(err)
	}
	team := regexp.MustCompile(`^@[\w-]+/[\w-]+$`)
	owned := 0
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		owned++
		found, err := filepath.Glob(filepath.Join(root, fields[0]))
		if err != nil || len(found) == 0 {
			t.Errorf("CODEOWNERS names %s, which is not there", fields[0])
		}
		for _, owner := range fields[1:] {
			if !team.MatchString(owner) {
				t.Errorf("CODEOWNERS: %s is owned by %s, which is no team", fields[0], owner)
			}
		}
		if len(fields) == 1 {
			t.Errorf("CODEOWNERS: %s has no owner", fields[0])
		}
	}
	if owned < 10 {
		t.Errorf("%d lines of CODEOWNERS", owned)
	}
}

// Forms of issues have what the code host asks of them: without it, it shows none.
func TestIssueForms(t *testing.T) {
	forms, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, path := range forms {
		name := filepath.Base(path)
		if name == "config.yml" {
			continue
		}
		read++
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Value string
					Options      []string
				}
			}
		}
		readYAML(t, ".github/ISSUE_TEMPLATE/"+name, &form)
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s lacks a name, a description or a body", name)
		}
		ids := map[string]bool{}
		for i, b := range form.Body {
			ok := b.ID != "" && !ids[b.ID] && b.Attributes.Label != ""
			ids[b.ID] = true
			switch b.Type {
			case "markdown":
				ok = b.Attributes.Value != ""
			case "dropdown":
				ok = ok && len(b.Attributes.Options) > 1
			case "textarea", "input":
			default:
				ok = false
			}
			if !ok {
				t.Errorf("%s: part %d (%s %s) is not complete, or its id stands twice", name, i+1, b.Type, b.ID)
			}
		}
	}
	if read < 2 {
		t.Errorf("%d forms", read)
	}
}
