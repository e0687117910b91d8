package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/saved"
)

// dashboardTimeout bounds the head of a request to the dashboard of a saved run.
const dashboardTimeout = 10 * time.Second

func dashboardCommand() command {
	return command{
		name: "dashboard", summary: "look at a saved run in the browser: a journal, a report, or a folder of them",
		usage: "JOURNAL | REPORT.json | FOLDER",
		about: `
Serves the page that a running server has at its admin address, for a journal (simulate --journal, serve --journal), for
reports (simulate --json, load --out, demo) and for the rows of 'sluice reproduce --out'. With --speed a journal is
played, so that machines are seen at work.`,
		examples: "sluice simulate -f sluice.yaml --journal run.journal --rates 0:50,60:200\nsluice dashboard " +
			"run.journal\nsluice dashboard run.journal --speed 10\nsluice dashboard out/demo",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			address := fs.String("listen", "127.0.0.1:8003", "`address` to serve the page at")
			speed := fs.Float64("speed", 0, "play a journal at this `factor` of its own speed; 0 reads it at once")
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "name one journal, report or folder")
				}
				if *speed < 0 {
					return fault.Errorf(fault.Usage, "--speed %v: want at least 0", *speed)
				}
				s, err := saved.OpenSaved(args[0], *speed)
				if err != nil {
					return err
				}
				defer s.Close()
				s.About(aboutFigure)
				return showSaved(e, s, *address, *speed)
			}
		},
	}
}

// showSaved serves the page until the program is asked to stop.
func showSaved(e *Env, s *saved.Saved, address string, speed float64) error {
	l, err := new(net.ListenConfig).Listen(e.Context, "tcp", address)
	if err != nil {
		return fault.Errorf(fault.Usage, "--listen: %w", err)
	}
	fmt.Fprintf(e.Stdout, "the dashboard is at http://%s/\n", l.Addr())
	notice := func() {
		if n := s.Notice(); n != "" {
			fmt.Fprintln(e.Stderr, n)
		}
	}
	ctx, stop := context.WithCancel(e.Context)
	defer stop()
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: dashboardTimeout}
	played := make(chan error, 1)
	go func() {
		var err error
		if speed > 0 {
			err = s.Play(ctx, speed)
		}
		notice()
		played <- err
	}()
	go s.Run(ctx)
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-played
}
