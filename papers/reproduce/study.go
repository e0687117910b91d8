package reproduce

import (
	"context"
	"fmt"
	"slices"
)

// Study is a paper whose figures are declared in code. R is its runner, which embeds *Runner and holds what the figures
// share.
type Study[R framed] struct {
	Name, Title string
	Figures     []Declaration[R]
	// New makes the runner of a request.
	New func(Request) (R, error)
	// Notes are said of all figures, after the notes of each.
	Notes []string
	// Solver says that the figures need a solver of programs.
	Solver bool
}

// Declaration is a figure with the code that declares it.
type Declaration[R any] struct {
	Name string // such as "4" or "T2"
	Doc  string // one line that says what it shows
	// Declare adds the figure's tasks to the runner and its rows, charts and notes to the sheet.
	Declare func(R, *Sheet) error
	// OnRequest figures run only when they are asked for by name: they take long, or measure times, which differ
	// between machines and runs.
	OnRequest bool
}

// framed is satisfied by types that embed *Runner.
type framed interface{ frame() *Runner }

func (r *Runner) frame() *Runner { return r }

// Paper returns the study as what a program lists and runs.
func (s *Study[R]) Paper() Paper {
	p := Paper{Name: s.Name, Title: s.Title}
	for i := range s.Figures {
		p.Figures = append(p.Figures, Figure{s.Figures[i].Name, s.Figures[i].Doc})
	}
	p.Run = func(ctx context.Context, q Request) (*Outcome, error) {
		if s.Solver && q.Solver == nil {
			return nil, fmt.Errorf("the experiments of %s need a solver of integer programs", s.Name)
		}
		run, err := s.New(q)
		if err != nil {
			return nil, err
		}
		return s.Run(ctx, run)
	}
	return p
}

// Run declares the figures that the runner's request names, in the order of the study, and runs their tasks. Without
// names it takes all figures but those that are OnRequest.
func (s *Study[R]) Run(ctx context.Context, run R) (*Outcome, error) {
	f := run.frame()
	for i := range s.Figures {
		x := &s.Figures[i]
		if len(f.Figures) == 0 && x.OnRequest || len(f.Figures) > 0 && !slices.Contains(f.Figures, x.Name) {
			continue
		}
		if err := x.Declare(run, &Sheet{Paper: s.Name, Figure: x.Name, run: f}); err != nil {
			return nil, err
		}
	}
	f.AddNotes(s.Notes...)
	return f.Run(ctx)
}
