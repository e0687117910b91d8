package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
)

// progress draws a bar on a terminal for operations that take longer than two seconds. If Stderr is no terminal, it
// prints a line now and then.
type progress struct {
	e     *Env
	begun time.Time
	drawn time.Time
	wide  int
}

func newProgress(e *Env) *progress { return &progress{e: e, begun: time.Now()} }

// show draws the share that is done, in [0, 1], and the text what. It draws at most every 100 ms.
func (p *progress) show(share float64, what string) {
	now := time.Now()
	if !p.e.Terminal {
		p.line(now, share, what)
		return
	}
	if now.Sub(p.begun) < 2*time.Second || now.Sub(p.drawn) < 100*time.Millisecond && share < 1 {
		return
	}
	p.drawn = now
	share = min(max(share, 0), 1)
	const cells = 30
	full := int(share * cells)
	left := ""
	if spent := now.Sub(p.begun); share > 0.02 && share < 1 {
		left = fmt.Sprintf(", %v left", (time.Duration(float64(spent) * (1 - share) / share)).Round(time.Second))
	}
	line := fmt.Sprintf("[%s%s] %3.0f %%%s  %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*share,
		left, what)
	pad := max(p.wide-len(line), 0)
	p.wide = len(line)
	fmt.Fprintf(p.e.Stderr, "\r%s%s", line, strings.Repeat(" ", pad))
}

// plainEvery is the least time between two lines where there is no terminal.
const plainEvery = 15 * time.Second

// line prints the share that is done on a line of its own.
func (p *progress) line(now time.Time, share float64, what string) {
	if now.Sub(p.begun) < plainEvery || now.Sub(p.drawn) < plainEvery {
		return
	}
	p.drawn = now
	spent := now.Sub(p.begun).Round(time.Second)
	fmt.Fprintf(p.e.Stderr, "%3.0f %% after %v  %s\n", 100*min(max(share, 0), 1), spent, what)
}

// clear removes the bar, so that other text can be printed, and restarts the two seconds.
func (p *progress) clear() {
	if p.wide > 0 {
		fmt.Fprintf(p.e.Stderr, "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
	p.begun = time.Now()
}

// terminalOptions draw progress and print notices on the terminal.
func terminalOptions(e *Env) host.Options {
	return host.Options{
		Measured: userCache("measured"),
		Progress: e.bar.show,
		Notice: func(sentence string) {
			e.bar.clear()
			fmt.Fprintln(e.Stderr, sentence)
		},
	}
}

// userCache is a folder of the user's cache of this program.
func userCache(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "sluice", name)
}

// open opens a configuration.
func open(e *Env, path string) (*host.Opened, error) { return host.Open(path, terminalOptions(e)) }

// openQuick is openUnder for a configuration whose models are measured in seconds, now where first is set.
func openQuick(e *Env, path, system string, first bool) (*host.Opened, error) {
	options := terminalOptions(e)
	options.Quick, options.Imported, options.ProfileFirst = true, true, first
	return openWith(path, system, options)
}

// openWith opens a configuration with options, with another system if one is named.
func openWith(path, system string, options host.Options) (*host.Opened, error) {
	o, err := host.Open(path, options)
	if err != nil || system == "" {
		return o, err
	}
	return o.WithSystem(system)
}

// openUnder opens a configuration, with another system if one is named.
func openUnder(e *Env, path, system string) (*host.Opened, error) {
	return openWith(path, system, terminalOptions(e))
}

// paths returns a list of the given path, empty for "".
func paths(given string) []string {
	if given == "" {
		return nil
	}
	return []string{given}
}
