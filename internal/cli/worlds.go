package cli

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/internal/host/fault"
	writer "github.com/sluice-serving/sluice/internal/host/worlds"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
)

func worldsCommand() command {
	return command{
		name: "worlds", summary: "make worlds to measure systems in",
		usage: "generate | traits",
		about: `
A world is machines, apps with variants, and a load. Worlds are drawn from a vocabulary of traits: several kinds
of machine, queries of many sizes, graphs, clumps, overload, rent and more, mixed as users mix them. 'sluice
reproduce worlds' runs every system in forty-eight of them.`,
		examples: "sluice worlds generate --seed 7 --count 20 --out worlds\nsluice worlds traits",
		verbs:    []command{worldsGenerateCommand(), worldsTraitsCommand()},
	}
}

// mostWorlds is how many worlds are written at once.
const mostWorlds = 10_000

func worldsGenerateCommand() command {
	return command{
		name: "worlds generate", summary: "write worlds as ordinary files",
		usage: "--out DIR [--seed 1] [--count 48] [--first 0] [--lengths] [--confidences]",
		about: `
Writes each world into a folder of its own: a sluice.yaml, its profile and its workload. It prints the traits of
each, and the command that simulates it. A seed and a number make the same world on every machine.`,
		examples: "sluice worlds generate --out worlds\nsluice worlds generate --seed 7 --count 20 --out worlds\n" +
			"sluice worlds generate --seed 1 --first 12 --count 1 --out worlds",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			seed := fs.Uint64("seed", 1, "`seed` of the worlds")
			count := fs.Int("count", 48, "`number` of worlds")
			first := fs.Int("first", 0, "`number` of the first world")
			lengths := fs.Bool("lengths", false, "the same worlds with queries of many lengths")
			sure := fs.Bool("confidences", false, "worlds whose variants know how sure they are of an answer")
			out := fs.String("out", "", "`folder` for the folders of the worlds; needed")
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				switch {
				case len(args) > 0:
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				case *out == "":
					return fault.Errorf(fault.Usage, "--out is needed: the folder to write into")
				case *count < 1 || *count > mostWorlds || *first < 0 || *first+*count > worlds.WithLengths:
					return fault.Errorf(fault.Usage, "--count is %d and --first %d, want 1 to %d and 0 to %d", *count,
						*first, mostWorlds, worlds.WithLengths-mostWorlds)
				}
				var list []writtenWorld
				for n := *first; n < *first+*count; n++ {
					number := n
					if *lengths {
						number += worlds.WithLengths
					}
					if *sure {
						number += worlds.WithConfidences
					}
					w := worlds.Generate(*seed, number)
					folder := filepath.Join(*out, w.Name)
					if err := writer.Write(folder, w); err != nil {
						return err
					}
					list = append(list, writtenWorld{
						Name: w.Name, Folder: folder, Traits: w.Traits, Offered: w.Offered(), Reach: w.Reach,
						Best: w.Best, Command: fmt.Sprintf("sluice simulate -f %s --workload %s",
							filepath.Join(folder, worlds.ConfigName), filepath.Join(folder, worlds.WorkloadName)),
						about: w.String(), traits: w.TraitList(),
					})
				}
				if *asJSON {
					return writeJSON(e.Stdout, list)
				}
				return printWorlds(e.Stdout, list)
			}
		},
	}
}

// writtenWorld is a world in a folder. Rates are in queries/s of all apps together.
type writtenWorld struct {
	Name    string         `json:"name"`
	Folder  string         `json:"folder"`
	Traits  []worlds.Trait `json:"traits"`
	Offered float64        `json:"offered"`
	Reach   float64        `json:"reach"`
	Best    float64        `json:"best"`
	Command string         `json:"command"`

	about, traits string
}

func printWorlds(to io.Writer, list []writtenWorld) error {
	for _, w := range list {
		if _, err := fmt.Fprintf(to, "%s\n  traits: %s\n  %s\n  %s\n", w.Name, w.traits, w.about,
			w.Command); err != nil {
			return err
		}
	}
	return nil
}

func worldsTraitsCommand() command {
	return command{
		name: "worlds traits", summary: "list the traits that worlds have", usage: "",
		about:    "A world has some of the traits. Without a trait it has the plain form.",
		examples: "sluice worlds traits",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				if *asJSON {
					traits := make(map[worlds.Trait]string)
					for _, m := range worlds.Vocabulary() {
						traits[m.Trait] = m.Doc
					}
					return writeJSON(e.Stdout, traits)
				}
				t := tabwriter.NewWriter(e.Stdout, 0, 8, 2, ' ', 0)
				for _, m := range worlds.Vocabulary() {
					fmt.Fprintf(t, "%s\t%s\n", m.Trait, m.Doc)
				}
				return t.Flush()
			}
		},
	}
}
