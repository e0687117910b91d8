package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a shell is told for a command line, by the word at its end: commands, verbs, flags, values of flags, arguments,
// and the names that a configuration and a server have.
func TestComplete(t *testing.T) {
	file := fakeWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = w.Write([]byte(`{"models":["app","served"]}`))
		case "/v1/functions/":
			_, _ = w.Write([]byte(`[{"name":"classify"}]`))
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		words []string
		want  string // the words, or the first of them before ...
	}{
		{nil, "serve node infer ..."},
		{[]string{"serv"}, "serve"},
		{[]string{"help", "po"}, "policy"},
		{[]string{"nonsense", ""}, ""},
		{[]string{"policy", ""}, "generate show verify"},
		{[]string{"policy", "show", "--rat"}, "--rate --rates"},
		{[]string{"config", ""}, "check init objectives template ..."},
		{[]string{"config", "check", ""}, ""},
		{[]string{"config", "--json", "ch"}, "check"},
		{[]string{"config", "--server", "ch"}, ""},
		{[]string{"completion", "z"}, "zsh"},
		{[]string{"serve", "--htt"}, "--http"},
		{[]string{"serve", "--he"}, "--help"},
		{[]string{"serve", ""}, ""},
		{[]string{"serve", "--system", "proteus-f"}, "proteus-fair"},
		{[]string{"serve", "--system", "=", "proteus-f"}, "proteus-fair"},
		{[]string{"serve", "--http", "="}, ""},
		{[]string{"systems", "proteus-f"}, "proteus-fair"},
		{[]string{"systems", "lst"}, "lsth"},
		{[]string{"reproduce", "ram"}, "ramsis"},
		{[]string{"import", "k"}, "kserve"},
		{[]string{"simulate", "-f", file, "--app", ""}, "app"},
		{[]string{"infer", "--url", server.URL, ""}, "app served"},
		{[]string{"infer", "--url=" + server.URL, "--model-version", "2", "s"}, "served"},
		{[]string{"infer", "--url", "127.0.0.1:1", ""}, ""},
		{[]string{"logs", "--admin", server.URL, ""}, "classify"},
		{[]string{"delete", "--admin", "127.0.0.1:1", ""}, ""},
	} {
		code, out, errs := sluice(t, append([]string{completeWord}, c.words...)...)
		var got []string
		for line := range strings.Lines(out) {
			word, about, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if got = append(got, word); about == "" {
				t.Errorf("%q: %q says nothing", c.words, word)
			}
		}
		all := strings.Join(got, " ")
		if first, more := strings.CutSuffix(c.want, " ..."); code != 0 || errs != "" || all != c.want &&
			(!more || !strings.HasPrefix(all, first)) {
			t.Errorf("%q: %d, %q, want %q %s", c.words, code, all, c.want, errs)
		}
	}
}

// Every command has a manual page, with everything that its help says. The page of a noun leads to those of its verbs.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := sluice(t, "man", dir); code != 0 {
		t.Fatal(errs)
	}
	var check func(list []command)
	check = func(list []command) {
		for k := range list {
			c := &list[k]
			path := filepath.Join(dir, c.pageName()+".1")
			page, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				continue
			}
			_, help, _ := sluice(t, append(strings.Fields(c.name), "--help")...)
			text := strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`, ".BR ", "").Replace(string(page))
			for _, word := range strings.Fields(help) {
				switch word {
				case "Usage:", "Flags:", "Examples:", "Verbs:":
				default:
					if !strings.Contains(text, word) && !strings.HasPrefix(c.name, word) {
						t.Errorf("%s lacks %q of its help", path, word)
					}
				}
			}
			check(c.verbs)
		}
	}
	check(commands())
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not there to read the pages")
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	for _, page := range pages {
		if out, err := exec.Command(groff, "-man", "-ww", "-Tascii", "-z", page).CombinedOutput(); err != nil ||
			len(out) > 0 {
			t.Errorf("%s: %v %s", page, err, out)
		}
	}
}
