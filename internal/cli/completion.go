package cli

import (
	"embed"
	"flag"

	"github.com/sluice-serving/sluice/internal/host/fault"
)

//go:embed completions
var completions embed.FS

func completionCommand() command {
	return command{
		name: "completion", summary: "print what has a shell complete commands, flags and names",
		usage: "bash | zsh | fish",
		about: `
Prints a script for the shell. It asks the program for commands, flags, systems, papers, apps and functions. Apps are
those of the sluice.yaml of -f, or of the current folder, and of the server that runs here or at --url.`,
		examples: "source <(sluice completion bash)\nsluice completion zsh > ~/.zfunc/_sluice\n" +
			"sluice completion fish > ~/.config/fish/completions/sluice.fish",
		prepare: func(*flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, args []string) error {
				if len(args) == 1 {
					if script, err := completions.ReadFile("completions/sluice." + args[0]); err == nil {
						_, err = e.Stdout.Write(script)
						return err
					}
				}
				return fault.Errorf(fault.Usage, "name a shell: bash, zsh or fish")
			}
		},
	}
}
