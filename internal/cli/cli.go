// Package cli is the command line: one file per command. Streams, arguments, environment and exit status are values, so
// that the whole program runs inside a test.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host/fault"
)

// Env is the environment of the program: arguments, streams, variables, and the context that ends it.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	// Context ends when the program is asked to stop.
	Context context.Context
	// Hurry returns a channel that is closed when the program is asked a second time to stop. A command that does not
	// call it is ended by that. Nil if nobody can ask.
	Hurry func() <-chan struct{}
	// Terminal reports whether Stderr is a terminal. Progress bars are drawn on terminals only.
	Terminal bool

	bar *progress // of the command that runs
}

// OS returns the environment of this process.
func OS() Env {
	ctx, hurry := stopSignals()
	return Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Context: ctx, Hurry: hurry,
		Terminal: term.IsTerminal(int(os.Stderr.Fd()))}
}

// Exit statuses, the same for every command.
const (
	ExitOK       = 0 // done
	ExitFailed   = 1 // the operation failed
	ExitUsage    = 2 // the command line is wrong
	ExitConfig   = 3 // a file that the person wrote is wrong
	ExitMissing  = 4 // something has to be installed or fetched first
	ExitShortOf  = 5 // it ran, but a required quality was not reached
	ExitNoServer = 6 // the server did not answer
)

// exitStatuses says the same to people.
const exitStatuses = `0 done, 1 failed, 2 wrong command line, 3 wrong configuration or input file, 4 something must be
installed first, 5 ran but fell short of what was demanded, 6 the server did not answer.`

const overviewExamples = `sluice demo                       serve real models for half a minute and see it predicted
sluice config init models > sluice.yaml
sluice plan -f sluice.yaml --frontier
sluice serve -f sluice.yaml
sluice load -f sluice.yaml --request-rate-range 100 --duration 30s
sluice help serve`

// exitStatus returns the exit status for the kind of an error.
func exitStatus(err error) int {
	switch fault.Of(err) {
	case fault.Usage:
		return ExitUsage
	case fault.Config:
		return ExitConfig
	case fault.Missing:
		return ExitMissing
	case fault.Short:
		return ExitShortOf
	case fault.NoServer:
		return ExitNoServer
	}
	return ExitFailed
}

// command is one noun or verb of the program.
type command struct {
	name     string
	summary  string // one line
	usage    string // after the name
	about    string // paragraphs before the flags
	examples string // help ends with them
	// verbs are the commands "NOUN VERB" of a noun; prepare is not used then.
	verbs []command
	// prepare declares flags and returns the function that runs after they are parsed.
	prepare func(fs *flag.FlagSet) func(e *Env, args []string) error
}

func commands() []command {
	return []command{
		serveCommand(), nodeCommand(), inferCommand(), reloadCommand(), deployCommand(), listCommand(), logsCommand(),
		deleteCommand(), loadCommand(), profileCommand(),
		planCommand(), policyCommand(), simulateCommand(), configCommand(), keyCommand(), importCommand(),
		exportCommand(),
		devicesCommand(), exampleCommand(), systemsCommand(), worldsCommand(), reproduceCommand(), explainCommand(),
		whatIfCommand(), replayCommand(), dashboardCommand(), topCommand(), demoCommand(), completionCommand(),
		manualCommand(), setupCommand(), versionCommand(),
	}
}

// Main runs the program and returns its exit status.
func Main(e Env) int {
	if len(e.Args) == 0 {
		overview(e.Stderr)
		return ExitUsage
	}
	e.bar = newProgress(&e)
	name := e.Args[0]
	if name == "help" && len(e.Args) > 1 {
		name = e.Args[1]
		e.Args = append(slices.Clone(e.Args[1:]), "--help")
	}
	switch name {
	case "help", "-h", "--help":
		overview(e.Stdout)
		return ExitOK
	case "--version":
		name = "version"
	case completeWord:
		return complete(&e, e.Args[1:])
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(&e, e.Args[1:])
		}
	}
	fmt.Fprintf(e.Stderr, "sluice: there is no command %q%s\nRun 'sluice help' for the list.\n", name, nearest(name))
	return ExitUsage
}

func (c *command) run(e *Env, args []string) int {
	if c.verbs != nil {
		return c.dispatch(e, args)
	}
	fs := flag.NewFlagSet("sluice "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	body := c.prepare(fs)
	rest, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		c.help(e.Stdout, fs)
		return ExitOK
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "sluice %s: %v\nRun 'sluice %s --help'.\n", c.name, err, c.name)
		return ExitUsage
	}
	err = body(e, rest)
	e.bar.clear()
	if err == nil {
		return ExitOK
	}
	code := exitStatus(err)
	if text := err.Error(); text != "" {
		fmt.Fprintf(e.Stderr, "sluice %s: %s\n", c.name, text)
	}
	if p := (*dataplane.Panic)(nil); errors.As(err, &p) {
		fmt.Fprintf(e.Stderr, "This is a fault of the program, please report it:\n%s", p.Stack)
	}
	if code == ExitUsage {
		fmt.Fprintf(e.Stderr, "Run 'sluice %s --help'.\n", c.name)
	}
	return code
}

// dispatch runs the verb that the arguments begin with.
func (c *command) dispatch(e *Env, args []string) int {
	if len(args) == 0 {
		c.list(e.Stderr)
		return ExitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		c.list(e.Stdout)
		return ExitOK
	}
	at := slices.IndexFunc(c.verbs, func(v command) bool { return v.name == c.name+" "+args[0] })
	if at < 0 {
		fmt.Fprintf(e.Stderr, "sluice %s: there is no %q.\nRun 'sluice %s --help'.\n", c.name, args[0], c.name)
		return ExitUsage
	}
	return c.verbs[at].run(e, args[1:])
}

// list is the help of a noun.
func (c *command) list(w io.Writer) {
	fmt.Fprintf(w, "Usage: sluice %s %s\n\n%s\n\nVerbs:\n", c.name, c.usage, strings.TrimSpace(c.about))
	for _, v := range c.verbs {
		fmt.Fprintf(w, "  %-18s %s\n", v.name, v.summary)
	}
	fmt.Fprintf(w, "\nExamples:\n%s\n", indent(strings.Trim(c.examples, "\n")))
}

// parse takes flags before, between and after arguments.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		args = fs.Args()
		if len(args) == 0 {
			return rest, nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

func overview(w io.Writer) {
	fmt.Fprint(w,
		"sluice serves machine-learning models under latency objectives.\n\nUsage: sluice COMMAND [FLAGS] "+
			"[ARGUMENTS]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, "\nExit status: %s\n\nExamples:\n%s\n", exitStatuses, indent(overviewExamples))
}

func (c *command) help(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintf(w, "Usage: sluice %s %s\n\n%s\n", c.name, c.usage, strings.TrimSpace(c.about))
	for k, o := range options(fs) {
		if k == 0 {
			fmt.Fprint(w, "\nFlags:\n")
		}
		fmt.Fprintf(w, "  %-30s %s\n", strings.TrimSpace(o.name+" "+o.value), o.about)
	}
	if c.examples != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", indent(strings.Trim(c.examples, "\n")))
	}
}

// option is a flag as help shows it.
type option struct{ name, value, about string }

// options are the flags of a command, by name.
func options(fs *flag.FlagSet) (out []option) {
	fs.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		name := "--" + f.Name
		if len(f.Name) == 1 {
			name = "-" + f.Name
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
			text += " (default " + f.DefValue + ")"
		}
		out = append(out, option{name, strings.ToUpper(kind), text})
	})
	return out
}

func indent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = "  " + strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func nearest(name string) string {
	for _, c := range commands() {
		if len(name) > 1 && (strings.HasPrefix(c.name, name) || strings.HasPrefix(name, c.name)) {
			return fmt.Sprintf(" (did you mean %q?)", c.name)
		}
	}
	return ""
}
