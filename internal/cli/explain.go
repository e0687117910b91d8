package cli

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// maxExplanation bounds the answer of a server, in bytes.
const maxExplanation = 1 << 20

func explainCommand() command {
	return command{
		name: "explain", summary: "why a query got its variant, its batch and its wait",
		usage: "QUERY-ID [--server HOST:PORT | --journal FILE]",
		about: `
Asks a running server's admin address, or reads a journal. Every answer carries its query's number in the response
parameter query_id; a server remembers the latest ones.`,
		examples: "sluice explain 4711\nsluice explain 4711 --journal run.journal",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			server := fs.String("server", config.DefaultAdmin, "admin `address` of the server")
			file := fs.String("journal", "", "read this journal `file` instead")
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "give one query number")
				}
				id, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil || id == 0 {
					return fault.Errorf(fault.Usage, "%q is not a query number", args[0])
				}
				if *file != "" {
					return explainFromJournal(e, *file, serving.QueryID(id), *asJSON)
				}
				req, err := http.NewRequestWithContext(e.Context, http.MethodGet,
					fmt.Sprintf("%s/debug/explain?query=%d", serverURL(*server), id), nil)
				if err != nil {
					return fault.Wrap(fault.Usage, err)
				}
				req.Header.Set("Accept", "text/plain")
				authorize(req, e.Getenv("SLUICE_TOKEN"))
				if *asJSON {
					req.Header.Set("Accept", "application/json")
				}
				client := http.Client{Timeout: 10 * time.Second}
				resp, err := client.Do(req)
				if err != nil {
					return fault.Errorf(fault.NoServer,
						"%v: is the server running, and is --server its admin address?", err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
				if err != nil {
					return fault.Wrap(fault.NoServer, err)
				}
				if resp.StatusCode != http.StatusOK {
					return fault.Errorf(fault.Failed, "%s", body)
				}
				_, err = e.Stdout.Write(body)
				return err
			}
		},
	}
}

func explainFromJournal(e *Env, path string, id serving.QueryID, asJSON bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	x, err := steps.ExplainJournal(f, id)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if asJSON {
		return writeJSON(e.Stdout, x)
	}
	return x.Text(e.Stdout)
}
