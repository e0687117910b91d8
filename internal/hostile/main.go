// Hostile runs the tests that do what strangers do to a server, and prints a table: a row for each attack, how many
// tests tried it, and whether the server held. It ends with status 1 where one did not, or where nothing was tried.
//
//	go run ./internal/hostile
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

//go:embed attacks.txt
var list string

// attack is a row: what is tried, and the tests of a package that try it.
type attack struct {
	what, folder string
	tests        []string
}

// attacks reads the list.
func attacks(list string) (out []attack, err error) {
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 3 {
			return nil, fmt.Errorf("%q: want an attack, a package and tests, with | between them", line)
		}
		out = append(out, attack{fields[0], fields[1], strings.Fields(fields[2])})
	}
	return out, nil
}

// outcome counts the tests of a run, with the tests within them.
type outcome struct{ passed, failed, skipped int }

// read counts what `go test -json` says, by the name of the outermost test.
func read(r io.Reader, failures io.Writer) (map[string]outcome, error) {
	out := make(map[string]outcome)
	said := make(map[string][]string)
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Text(), err)
		}
		top, _, _ := strings.Cut(e.Test, "/")
		x := out[top]
		switch e.Action {
		case "output", "build-output":
			said[top] = append(said[top], e.Output)
			continue
		case "pass":
			x.passed++
		case "fail", "build-fail":
			x.failed++
		case "skip":
			x.skipped++
		default:
			continue
		}
		if out[top] = x; x.failed > 0 {
			fmt.Fprint(failures, strings.Join(said[top], ""))
			said[top] = nil
		}
	}
	return out, s.Err()
}

// row sums up the tests of an attack.
func row(a attack, of map[string]outcome) (tried int, held string) {
	held = "yes"
	for _, name := range a.tests {
		x := of[name]
		tried += x.passed + x.failed
		switch {
		case x.failed > 0:
			return tried, "NO"
		case x.passed == 0 && x.skipped > 0:
			held = "not tried: something that it needs is missing"
		case x.passed == 0:
			return tried, "not tried: there is no " + name
		}
	}
	return tried, held
}

func run() error {
	all, err := attacks(list)
	if err != nil {
		return err
	}
	byFolder := make(map[string][]string)
	var folders []string
	for _, a := range all {
		if byFolder[a.folder] == nil {
			folders = append(folders, a.folder)
		}
		byFolder[a.folder] = append(byFolder[a.folder], a.tests...)
	}
	slices.Sort(folders)
	results := make(map[string]map[string]outcome)
	for _, folder := range folders {
		fmt.Fprintln(os.Stderr, folder)
		tests := exec.CommandContext(context.Background(), "go", "test", "-json", "-count=1", "-run",
			"^("+strings.Join(byFolder[folder], "|")+")$", folder)
		tests.Stderr = os.Stderr
		out, err := tests.StdoutPipe()
		if err == nil {
			err = tests.Start()
		}
		if err != nil {
			return err
		}
		if results[folder], err = read(out, os.Stderr); err != nil {
			return err
		}
		_ = tests.Wait() // failures are in the results
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\ttried\theld")
	open := 0
	for _, a := range all {
		tried, held := row(a, results[a.folder])
		if fmt.Fprintf(w, "%s\t%d\t%s\n", a.what, tried, held); held != "yes" {
			open++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if open > 0 {
		return fmt.Errorf("%d of %d attacks were not held, or not tried", open, len(all))
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}
