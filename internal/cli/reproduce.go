package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	infless "github.com/sluice-serving/sluice/papers/infless/figures"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	kairos "github.com/sluice-serving/sluice/papers/kairos/figures"
	"github.com/sluice-serving/sluice/papers/later"
	"github.com/sluice-serving/sluice/papers/overload"
	proteus "github.com/sluice-serving/sluice/papers/proteus/figures"
	ramsis "github.com/sluice-serving/sluice/papers/ramsis/figures"
	"github.com/sluice-serving/sluice/papers/reproduce"
	scrooge "github.com/sluice-serving/sluice/papers/scrooge/figures"
	"github.com/sluice-serving/sluice/papers/worlds"
)

// papers are those that can be reproduced, and our own worlds.
var papers = []reproduce.Paper{
	proteus.Paper(), ramsis.Paper(), kairos.Paper(), infless.Paper(), scrooge.Paper(), later.Paper(),
	worlds.Paper(), overload.Paper(),
}

func reproduceCommand() command {
	return command{
		name: "reproduce", summary: "run a paper's experiments: what was published beside what is measured here",
		usage: "PAPER [FIGURE ...]",
		about: "The experiments run on the simulator, from numbers carried in the program; the same seeds give the " +
			"same bytes. In tables, what was\n" +
			"published stands in brackets behind what was measured, and the range over seeds behind their mean.",
		examples: "sluice reproduce --list\nsluice reproduce proteus\nsluice reproduce proteus 6 7 --seeds 5\nsluice " +
			"reproduce proteus 4 --json --out proteus-figures",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			list := fs.Bool("list", false, "list the papers and their figures")
			asJSON := fs.Bool("json", false, "print the rows as JSON")
			out := fs.String("out", "", "write the rows and the charts into `DIR`")
			seeds := fs.Int("seeds", 1, "runs of everything that draws by chance, 1 to 100")
			first := fs.Uint64("first-seed", 1, "the first of these seeds")
			arrivals := fs.String("arrivals", "",
				"`DIR` with the authors' arrival times, which this project does not carry")
			policies := fs.String("policies", "",
				"`DIR` that keeps the policies made in advance, for the next time; made anew when not given")
			parallel := fs.Int("parallel", runtime.NumCPU(), "runs at once")
			return func(e *Env, args []string) error {
				if *list {
					return listPapers(e, *asJSON)
				}
				if len(args) == 0 {
					return fault.Errorf(fault.Usage, "which paper? 'sluice reproduce --list' lists them")
				}
				at := slices.IndexFunc(papers, func(p reproduce.Paper) bool { return p.Name == args[0] })
				if at < 0 {
					return fault.Errorf(fault.Usage,
						"paper %q is not known: 'sluice reproduce --list' lists those that are",
						args[0])
				}
				if *seeds < 1 || *seeds > 100 || *parallel < 1 {
					return fault.Errorf(fault.Usage,
						"--seeds is %d and --parallel %d, want 1 to 100 and at least 1", *seeds,
						*parallel)
				}
				p := &papers[at]
				if err := p.Check(args[1:]); err != nil {
					return fault.Wrap(fault.Usage, err)
				}
				solver, err := host.Solver()
				if err != nil {
					return err
				}
				r := reproduce.Request{
					Figures: args[1:], Seeds: *seeds, First: *first, Parallel: *parallel, Solver: solver,
					Arrivals: *arrivals,
				}
				r.Runtime = func() (operators.Runtime, error) { return onnx.New(onnx.Config{}) }
				var kept *store.Policies
				if *policies != "" {
					kept = store.OpenPolicies(*policies)
					r.Policies = kept
				}
				var mu sync.Mutex
				r.Progress = func(share float64, what string) {
					mu.Lock()
					defer mu.Unlock()
					e.bar.show(share, what)
				}
				o, err := p.Run(e.Context, r)
				e.bar.clear()
				if err != nil {
					return err
				}
				if kept != nil && kept.Err() != nil {
					return fmt.Errorf("policies could not be kept: %w", kept.Err())
				}
				return show(e, p, o, *asJSON, *out)
			}
		},
	}
}

// aboutFigure returns the title of a paper and what a figure of it shows; "" for unknown ones.
func aboutFigure(paper, figure string) (title, shows string) {
	for _, p := range papers {
		if p.Name != paper {
			continue
		}
		for _, f := range p.Figures {
			if f.Name == figure {
				shows = f.Doc
			}
		}
		return p.Title, shows
	}
	return "", ""
}

func listPapers(e *Env, asJSON bool) error {
	if asJSON {
		type figure struct {
			Name string `json:"name"`
			Doc  string `json:"doc"`
		}
		type paper struct {
			Name    string   `json:"name"`
			Title   string   `json:"title"`
			Figures []figure `json:"figures"`
		}
		var all []paper
		for _, p := range papers {
			x := paper{Name: p.Name, Title: p.Title}
			for _, f := range p.Figures {
				x.Figures = append(x.Figures, figure(f))
			}
			all = append(all, x)
		}
		return writeJSON(e.Stdout, all)
	}
	for _, p := range papers {
		fmt.Fprintf(e.Stdout, "%s  %s\n", p.Name, p.Title)
		for _, f := range p.Figures {
			fmt.Fprintf(e.Stdout, "  %-3s %s\n", f.Name, f.Doc)
		}
	}
	return nil
}

// show prints the rows of an outcome and, with --out, writes rows and charts into a folder.
func show(e *Env, p *reproduce.Paper, o *reproduce.Outcome, asJSON bool, out string) error {
	var err error
	if asJSON {
		err = writeJSON(e.Stdout, o.Rows)
	} else {
		fmt.Fprintf(e.Stdout, "%s\n\n", p.Title)
		err = reproduce.WriteTable(e.Stdout, o.Rows)
		for _, n := range o.Notes {
			fmt.Fprintf(e.Stdout, "\n%s\n", n)
		}
	}
	if err != nil || out == "" {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	write := func(name string, f func(io.Writer) error) error {
		path := filepath.Join(out, name)
		if err := files.Write(path, f); err != nil {
			return err
		}
		if !asJSON {
			fmt.Fprintf(e.Stdout, "written: %s\n", path)
		}
		return nil
	}
	if err := write("rows.json", func(w io.Writer) error { return writeJSON(w, o.Rows) }); err != nil {
		return err
	}
	for _, c := range o.Charts {
		if err := write(c.Name+".png", c.PNG); err != nil {
			return err
		}
		if err := write(c.Name+".svg", c.SVG); err != nil {
			return err
		}
	}
	return nil
}
