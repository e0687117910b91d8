package cli

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
)

func trimmed(b []byte) string { return strings.TrimSpace(string(b)) }

func listCommand() command {
	return command{
		name: "list", summary: "show the functions of a running server", usage: "[--json]",
		about: `
Shows every function with its version, how it stands and its objective. A function is ready, starting, idle (it
has no instance and gets one when it is called), planning (its instances are being decided on) or failing. Exit
status: 0 done, 1 the server refused, 3 the server's configuration is wrong, 6 the server did not answer.`,
		examples: "sluice list\nsluice list --json --admin 127.0.0.1:9002\nsluice list --fleet default",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			asJSON := fs.Bool("json", false, "print JSON instead of a table")
			on := fleetFlags(fs)
			client := clientFlags(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				if on.name != "" {
					return on.list(e, *asJSON)
				}
				c, err := client(e)
				if err != nil {
					return err
				}
				all, err := c.List(e.Context)
				if err != nil {
					return classified(err)
				}
				if *asJSON {
					return writeJSON(e.Stdout, all)
				}
				if len(all) == 0 {
					fmt.Fprintln(e.Stdout, "no function is deployed: see 'sluice help deploy'")
					return nil
				}
				rows := [][]string{
					{"FUNCTION", "VERSION", "STATE", "READY", "SLO", "MAX BATCH", "LATENCY", "MODEL", "DEPLOYED"},
				}
				for _, s := range all {
					slo := fmt.Sprintf("p%g %v", s.Percentile, time.Duration(s.LatencyMS*1e6))
					rows = append(rows, []string{
						s.Name, strconv.Itoa(s.Version), s.State, strconv.Itoa(s.Instances), slo,
						batchOf(&s), latencyOf(&s), modelOf(&s), s.Deployed.Local().Format(time.DateTime),
					})
				}
				return columns(e.Stdout, "lrlrlrlll", rows)
			}
		},
	}
}

// batchOf is the largest batch of a function; a chain has one for each stage.
func batchOf(s *functions.Status) string {
	if len(s.Functions) > 0 {
		return "-"
	}
	return strconv.Itoa(s.MaxBatch)
}

// modelOf names the file of a function by its sum, or the functions of a chain.
func modelOf(s *functions.Status) string {
	if len(s.Functions) > 0 {
		return strings.Join(s.Functions, ", ")
	}
	return fmt.Sprintf("%.12s", s.Model)
}

// followEvery is how often logs --follow asks for new events.
const followEvery = 500 * time.Millisecond

// latencyOf returns in words whether a function's latency was measured, predicted or is learned, and the error of a
// prediction.
func latencyOf(s *functions.Status) string {
	switch {
	case len(s.Functions) > 0:
		return "its stages'"
	case s.Profile == "":
		return "learned"
	case s.PredictionError != nil:
		return fmt.Sprintf("%s (predicted %.0f %% off)", s.Profile, 100**s.PredictionError)
	}
	return s.Profile
}

func logsCommand() command {
	return command{
		name: "logs", summary: "show what happened to a function of late", usage: "FUNCTION [--follow] [--json]",
		about: `
Shows the latest events of a function: deployments, launches and stops of instances with the reason, loads, cold
starts and failures. The same event several times in a row is shown once, with the number. A server keeps the
last 256 of every function, until it is stopped. Exit status: 0 done, 1 there is no such function, or the server
refused, 3 the server's configuration is wrong, 6 the server did not answer.`,
		examples: "sluice logs classify\nsluice logs classify --follow\nsluice logs classify -n 20 --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			most := fs.Int("n", 100, "`number` of events, at most")
			follow := fs.Bool("follow", false, "go on with what happens from now on")
			asJSON := fs.Bool("json", false, "print JSON, an event a line")
			on := fleetFlags(fs)
			client := clientFlags(fs)
			return func(e *Env, args []string) error {
				if len(args) != 1 || *most < 1 {
					return fault.Errorf(fault.Usage, "name one function, and at least one event")
				}
				if on.name != "" {
					return on.logs(e, args[0], *most, *asJSON)
				}
				c, err := client(e)
				if err != nil {
					return err
				}
				for after := uint64(0); ; {
					list, err := c.Logs(e.Context, args[0], after, *most)
					if err != nil {
						if *follow && e.Context.Err() != nil {
							return nil //nolint:nilerr // the user has ended the command
						}
						return classified(err)
					}
					for _, x := range list {
						after = x.Seq
						if err := printEvent(e, &x, *asJSON); err != nil {
							return err
						}
					}
					if !*follow {
						return nil
					}
					select {
					case <-e.Context.Done():
						return nil
					case <-time.After(followEvery):
					}
				}
			}
		},
	}
}

func printEvent(e *Env, x *functions.Event, asJSON bool) error {
	if asJSON {
		return writeLine(e.Stdout, x)
	}
	times := ""
	if x.Count > 1 {
		times = fmt.Sprintf(" (%d times)", x.Count)
	}
	_, err := fmt.Fprintf(e.Stdout, "%s  %-10s  %s%s\n", x.At.Local().Format("2006-01-02 15:04:05.000"), x.Kind, x.Text,
		times)
	return err
}

func deleteCommand() command {
	return command{
		name: "delete", summary: "take a function out of a running server", usage: "FUNCTION",
		about: `
The function takes no query from now on; those it has accepted are answered. It is out of the server's store
when the command returns. Exit status: 0 done, 1 there is no such function, or the server refused, 3 the
server's configuration is wrong, 6 the server did not answer.`,
		examples: "sluice delete classify\nsluice delete classify --missing-ok",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			missing := fs.Bool("missing-ok", false, "a function that is not there is no error")
			deployment := fs.Bool("deployment", false,
				"cancel the deployment of it that is under way, and leave what was deployed before")
			on := fleetFlags(fs)
			client := clientFlags(fs)
			return func(e *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "name one function")
				}
				if on.name != "" {
					return on.remove(e, args[0], *missing)
				}
				c, err := client(e)
				if err != nil {
					return err
				}
				end, done := c.Delete, "deleted"
				if *deployment {
					end, done = c.Cancel, "its deployment is cancelled"
				}
				err = end(e.Context, args[0])
				if refused := (*functions.Refusal)(nil); *missing && errors.As(err, &refused) &&
					refused.Status == http.StatusNotFound {
					return nil
				}
				if err != nil {
					return classified(err)
				}
				fmt.Fprintf(e.Stdout, "%s: %s\n", args[0], done)
				return nil
			}
		},
	}
}
