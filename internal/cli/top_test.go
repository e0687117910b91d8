package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

// watched is a server of two apps, one of which misses its objective, on three machines.
func watched(t *testing.T) *top {
	t.Helper()
	half, all, burn := 0.5, 1.0, 50.0
	answers := map[string]any{
		"/api/v1/overview": &board.Overview{Workers: 3, WorkersUsed: 2, CostPerHour: 4.5, Apps: []board.AppNow{
			{Name: "good", ObjectiveMS: 50, Now: board.Window{Rate: 12, Violation: new(float64), Accuracy: &all}},
			{Name: "bad", ObjectiveMS: 80, Burn: &burn, Now: board.Window{Rate: 7, Violation: &half}},
		}},
		"/api/v1/machines": &board.Machines{Kinds: []board.Kind{{Name: "gpu"}}, Variants: []string{"big", "small"},
			Stages:  []board.StageName{{App: "good", Stage: "good"}},
			Workers: []board.WorkerInfo{{Name: "idle"}, {Name: "busy"}, {Name: "empty"}},
			States: []board.WorkerNow{
				{Instances: []board.InstanceNow{{Variants: []board.VariantNow{{Variant: 1, Loading: true}}}}},
				{Worker: 1, Busy: 0.75, Instances: []board.InstanceNow{{Variants: []board.VariantNow{{Variant: 0}},
					Running: []board.BatchNow{{Variant: 0}}}}},
				{Worker: 2},
			}},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(x)
	}))
	t.Cleanup(s.Close)
	return &top{base: s.URL + "/api/v1/", client: s.Client()}
}

// The lines have the numbers of the server, and say what is missed in words.
func TestTopLines(t *testing.T) {
	x := watched(t)
	if err := x.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	apps, machines := x.apps(wideScreen), x.workers()
	for _, want := range []struct {
		line topLine
		kind lineKind
		text []string
	}{
		{apps[0], headLine, []string{"$4.50/h", "2 of 3 machines"}},
		{apps[2], plainLine, []string{"good", "kept", "12.0/s", "0.00 %", "50.0 ms", "100.00 %"}},
		{apps[3], badLine, []string{"bad", "MISSED", "7.0/s", "50.00 %"}},
		{machines[2], plainLine, []string{"busy", "#########...", "75 %", "good: *big"}},
		{machines[3], plainLine, []string{"idle", "............", "~small"}},
		{machines[4], dimLine, []string{"empty", "nothing"}},
	} {
		if want.line.kind != want.kind {
			t.Errorf("%q is of kind %d", want.line.text, want.line.kind)
		}
		for _, part := range want.text {
			if !strings.Contains(want.line.text, part) {
				t.Errorf("%q lacks %q", want.line.text, part)
			}
		}
	}
	const narrow = 80
	for _, l := range x.apps(narrow) {
		if len(l.text) > narrow {
			t.Errorf("%q does not fit into %d characters", l.text, narrow)
		}
	}
	if l := x.apps(narrow)[3].text; !strings.Contains(l, "MISSED") || !strings.Contains(l, "80.0 ms") {
		t.Errorf("%q lacks what a narrow screen shows", l)
	}
	x.base += "such/"
	if err := x.ask(t.Context()); fault.Of(err) != fault.NoServer {
		t.Errorf("of a server that is none: %v", err)
	}
}

// On a screen, Tab changes to the machines, and q ends the program. A server that has gone is told of.
func TestTopOnScreen(t *testing.T) {
	x := watched(t)
	screen := tcell.NewSimulationScreen("")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(110, 10)
	shown := func() string {
		cells, width, _ := screen.GetContents()
		var b strings.Builder
		for k, c := range cells {
			if k > 0 && k%width == 0 {
				b.WriteByte('\n')
			}
			b.WriteString(string(c.Runes))
		}
		return b.String()
	}
	if err := x.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.draw(screen)
	if text := shown(); !strings.Contains(text, "MISSED") || !strings.Contains(text, "q quit") {
		t.Errorf("the screen shows\n%s", text)
	}
	if x.key(screen, tcell.NewEventKey(tcell.KeyTab, 0, 0)) {
		t.Error("Tab ends the program")
	}
	x.key(screen, tcell.NewEventKey(tcell.KeyDown, 0, 0))
	x.trouble = "gone"
	x.draw(screen)
	if text := shown(); !strings.Contains(text, "good: *big") || !strings.Contains(text, "old numbers: gone") {
		t.Errorf("the screen shows\n%s", text)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- x.watch(ctx, screen) }()
	screen.InjectKey(tcell.KeyRune, 'q', 0)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
