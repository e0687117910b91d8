package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts for shells, in the shells themselves: what stands there after a press of the tabulator.
func TestShellsComplete(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "sluice")); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, folder, "a file.yaml", "")
	t.Setenv(asProgram, "1")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, shell := range []struct {
		name string
		// script prints the words for the line in $@, without those that the shell finds itself.
		script []string
	}{
		{"bash", []string{"--norc", "-c", `source <(sluice completion bash)
			COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf '%s\n' "${COMPREPLY[@]}"`, "bash"}},
		{"zsh", []string{"-fc", `compdef() { [[ "$*" == "_sluice sluice" ]] || echo "compdef $*" }
			_describe() { print -l -- "${(@P)2}" | sed 's/:.*//' }
			_files() { }
			source <(sluice completion zsh); words=("$@"); CURRENT=$#; _sluice`, "zsh"}},
		{"fish", []string{"--no-config", "-c", `sluice completion fish | source
			complete -C (string join ' ' -- $argv) | string replace -r '\t.*' '' | string match -v '*file.yaml'`}},
	} {
		t.Run(shell.name, func(t *testing.T) {
			program, err := exec.LookPath(shell.name)
			if err != nil {
				t.Skipf("%s is not installed", shell.name)
			}
			for _, c := range []struct{ line, want string }{
				{"sluice simu", "simulate"}, {"sluice policy ", "generate show verify"},
				{"sluice serve --system proteus-fa", "proteus-fair"}, {"sluice completion b", "bash"},
				{"sluice serve --profile-f", "--profile-first"}, {"sluice config check ", ""}, {"sluice nonsense ", ""},
			} {
				cmd := exec.Command(program, append(shell.script, strings.Split(c.line, " ")...)...)
				cmd.Dir = folder
				out, err := cmd.CombinedOutput()
				got := strings.Fields(string(out))
				if err != nil && len(got) > 0 || strings.Join(got, " ") != c.want {
					t.Errorf("%q: %v %q, want %q", c.line, err, out, c.want)
				}
			}
		})
	}
}
