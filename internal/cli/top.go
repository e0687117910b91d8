package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gdamore/tcell/v2"
	"golang.org/x/term"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

const (
	topEvery   = time.Second
	topTimeout = 5 * time.Second
	// mostTop bounds an answer of the server, in bytes: several thousand workers.
	mostTop = 32 << 20
)

func topCommand() command {
	return command{
		name: "top", summary: "watch a running server in the terminal",
		usage: "[--server HOST:PORT]",
		about: `
Shows each app's objective, load, latency and accuracy and what the machines do, once a second: the numbers of the page
at the server's admin address. Arrow keys scroll, Tab changes between apps and machines, q quits. --once prints them
once, as does output that is no terminal. SLUICE_TOKEN is the key of a caller that may look, where one is asked for.`,
		examples: "sluice top\nsluice top --server 127.0.0.1:9002\nsluice top --once",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			server := fs.String("server", config.DefaultAdmin, "admin `address` of the server")
			once := fs.Bool("once", false, "print the numbers once")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				t := newTop(e, *server)
				defer t.client.CloseIdleConnections()
				out, ok := e.Stdout.(*os.File)
				if *once || !ok || !term.IsTerminal(int(out.Fd())) {
					if err := t.ask(e.Context); err != nil {
						return err
					}
					for _, x := range append(t.apps(wideScreen), append([]topLine{{}}, t.workers()...)...) {
						fmt.Fprintln(e.Stdout, x.text)
					}
					return nil
				}
				screen, err := tcell.NewScreen()
				if err != nil {
					return fmt.Errorf("this terminal cannot be used: %w: take --once", err)
				}
				if err := screen.Init(); err != nil {
					return fmt.Errorf("this terminal cannot be used: %w: take --once", err)
				}
				defer screen.Fini()
				return t.watch(e.Context, screen)
			}
		},
	}
}

// top watches a server.
type top struct {
	base     string
	client   *http.Client
	token    string // of a caller that may look; empty shows none
	overview board.Overview
	machines board.Machines
	trouble  string // why the numbers are old; empty where they are not

	onMachines bool // they are shown, not the apps
	first      int  // line that is shown first
}

// newTop watches the server at an admin address. The caller closes the idle connections of its client.
func newTop(e *Env, server string) *top {
	return &top{
		base: serverURL(server) + "/api/v1/", client: &http.Client{Timeout: topTimeout},
		token: e.Getenv("SLUICE_TOKEN"),
	}
}

// ask gets the present numbers. An error is of kind fault.NoServer.
func (t *top) ask(ctx context.Context) error {
	for path, into := range map[string]any{"overview": &t.overview, "machines": &t.machines} {
		if err := t.get(ctx, path, into); err != nil {
			return err
		}
	}
	return nil
}

func (t *top) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base+path, nil)
	if err != nil {
		return fault.Wrap(fault.Usage, err)
	}
	authorize(r, t.token)
	resp, err := t.client.Do(r)
	if err != nil {
		return fault.Errorf(fault.NoServer, "%w: is the server running, and is --server its admin address?", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostTop))
	if err != nil {
		return fault.Wrap(fault.NoServer, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fault.Errorf(fault.NoServer, "%s%s answers %s: is it a server of this version?", t.base, path,
			resp.Status)
	}
	switch x := into.(type) { // lists would keep what is not in the answer
	case *board.Overview:
		*x = board.Overview{}
	case *board.Machines:
		*x = board.Machines{}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Errorf(fault.NoServer, "%s%s: %v", t.base, path, err)
	}
	return nil
}

// watch draws until the person quits or ctx ends.
func (t *top) watch(ctx context.Context, screen tcell.Screen) error {
	events := make(chan tcell.Event)
	quit := make(chan struct{})
	defer close(quit)
	go screen.ChannelEvents(events, quit)
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	for fresh := true; ; {
		if fresh {
			t.trouble = ""
			if err := t.ask(ctx); err != nil {
				t.trouble = inShort(err)
			}
		}
		t.draw(screen)
		fresh = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			fresh = true
		case ev, ok := <-events:
			if !ok || t.key(screen, ev) {
				return nil
			}
		}
	}
}

// inShort says in a line of a screen why there are no new numbers.
func inShort(err error) string {
	if lost := (*net.OpError)(nil); errors.As(err, &lost) {
		return fmt.Sprintf("the server does not answer (%v)", lost.Err)
	}
	return err.Error()
}

// key takes a key, and reports whether it ends the program.
func (t *top) key(screen tcell.Screen, ev tcell.Event) (quit bool) {
	switch ev := ev.(type) {
	case *tcell.EventResize:
		screen.Sync()
	case *tcell.EventKey:
		_, height := screen.Size()
		switch ev.Key() {
		case tcell.KeyEscape, tcell.KeyCtrlC:
			return true
		case tcell.KeyTab:
			t.onMachines, t.first = !t.onMachines, 0
		case tcell.KeyUp:
			t.first--
		case tcell.KeyDown:
			t.first++
		case tcell.KeyPgUp:
			t.first -= height / 2
		case tcell.KeyPgDn:
			t.first += height / 2
		case tcell.KeyRune:
			return ev.Rune() == 'q'
		}
	}
	return false
}

// draw fills the screen. The head stays, the rest scrolls.
func (t *top) draw(screen tcell.Screen) {
	width, height := screen.Size()
	screen.Clear()
	lines := t.apps(width)
	if t.onMachines {
		lines = t.workers()
	}
	const head = 2
	t.first = max(0, min(t.first, len(lines)-(height-1)))
	put := func(y int, l topLine) {
		style := tcell.StyleDefault
		switch l.kind {
		case headLine:
			style = style.Bold(true)
		case badLine:
			style = style.Foreground(tcell.ColorRed).Bold(true)
		case dimLine:
			style = style.Dim(true)
		}
		x := 0
		for _, r := range l.text {
			if x >= width {
				return
			}
			screen.SetContent(x, y, r, nil, style)
			x++
		}
	}
	for y := range min(height-1, len(lines)) {
		if y < head {
			put(y, lines[y])
		} else if at := y + t.first; at < len(lines) {
			put(y, lines[at])
		}
	}
	last := topLine{text: "Tab apps or machines   arrows scroll   q quit", kind: dimLine}
	if t.trouble != "" {
		last = topLine{text: "old numbers: " + t.trouble, kind: badLine}
	}
	put(height-1, last)
	screen.Show()
}
