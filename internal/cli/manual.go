package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
)

func manualCommand() command {
	return command{
		name: "man", summary: "write manual pages", usage: "DIR",
		about: "Writes a manual page for the program and for every command into a folder, from the texts of " +
			"their help.",
		examples: "sluice man /usr/local/share/man/man1",
		prepare: func(*flag.FlagSet) func(*Env, []string) error {
			return func(_ *Env, args []string) error {
				if len(args) != 1 {
					return fault.Errorf(fault.Usage, "name the folder to write into")
				}
				return writeManual(args[0])
			}
		},
	}
}

// writeManual writes the pages of all commands.
func writeManual(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all := command{
		summary: "serve machine-learning models under latency objectives", usage: "COMMAND [FLAGS] [ARGUMENTS]",
		examples: overviewExamples, verbs: commands(),
	}
	return all.writePages(dir)
}

// writePages writes the page of a command and those of its verbs.
func (c *command) writePages(dir string) error {
	var page bytes.Buffer
	c.page(&page)
	err := files.Write(filepath.Join(dir, c.pageName()+".1"), func(w io.Writer) error {
		_, err := page.WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	for k := range c.verbs {
		if err := c.verbs[k].writePages(dir); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) pageName() string {
	return strings.ReplaceAll(strings.TrimSpace("sluice "+c.name), " ", "-")
}

// page writes a manual page (man(7)).
func (c *command) page(w io.Writer) {
	call := strings.TrimSpace("sluice " + c.name)
	fmt.Fprintf(w, ".TH %s 1 \"\" %q\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n%s\n",
		roff(strings.ToUpper(c.pageName())), "sluice "+host.Version(), roff(c.pageName()), roff(c.summary), roff(call),
		roff(c.usage))
	if about := strings.TrimSpace(c.about); about != "" {
		fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n", roff(about))
	}
	if c.verbs != nil {
		fmt.Fprint(w, ".SH COMMANDS\n")
		for k := range c.verbs {
			fmt.Fprintf(w, ".TP\n.BR %s (1)\n%s\n", roff(c.verbs[k].pageName()), roff(c.verbs[k].summary))
		}
	} else {
		fs := flag.NewFlagSet(call, flag.ContinueOnError)
		c.prepare(fs)
		for k, o := range options(fs) {
			if k == 0 {
				fmt.Fprint(w, ".SH OPTIONS\n")
			}
			fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(o.name+" "+o.value)), roff(o.about))
		}
	}
	fmt.Fprintf(w, ".SH EXIT STATUS\n%s\n.SH EXAMPLES\n.nf\n%s\n.fi\n", roff(exitStatuses),
		roff(strings.Trim(c.examples, "\n")))
	if c.name != "" {
		fmt.Fprint(w, ".SH SEE ALSO\n.BR sluice (1)\n")
	}
}

// roff writes a text so that nothing of it is a request or an escape of roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	for _, c := range []string{".", "'"} {
		text = strings.ReplaceAll("\n"+text, "\n"+c, "\n\\&"+c)[1:]
	}
	return text
}
