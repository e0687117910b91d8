// Command sluice-operator runs the parts of sluice that live in a Kubernetes cluster, one subcommand each:
// sluice-operator COMMAND [flags]. `sluice-operator help` lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// command is a subcommand. Its file registers it.
type command struct {
	name    string
	summary string // a line for the list of commands
	// run runs it until it is done or the context ends, which a first SIGINT or SIGTERM does. Flags are parsed from
	// args.
	run func(ctx context.Context, args []string) error
}

var commands []command

// register adds a subcommand to the list. The file of each calls it once, from init.
func register(c command) { commands = append(commands, c) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "sluice-operator:", err)
		os.Exit(1)
	}
}

// dispatch runs the command that args name.
func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage(out)
		return nil
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return fmt.Errorf("there is no command %q: there is %s", args[0], strings.Join(names, ", "))
}

func usage(out io.Writer) {
	fmt.Fprint(out, "sluice-operator COMMAND [flags]\n\ncommands:\n")
	sorted := slices.SortedFunc(slices.Values(commands), func(a, b command) int {
		return strings.Compare(a.name, b.name)
	})
	for _, c := range sorted {
		fmt.Fprintf(out, "  %-12s %s\n", c.name, c.summary)
	}
	fmt.Fprint(out, "\n`sluice-operator COMMAND -h` lists the flags of one.\n")
}
