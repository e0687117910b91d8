package cli

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/docs"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/systems"
)

// values are the words that a kind of flag or argument has, by its name in the help.
func values(e *Env, fs *flag.FlagSet, kind string) (out []candidate) {
	switch strings.ToUpper(kind) {
	case "SYSTEM":
		for _, s := range systems.All() {
			out = append(out, candidate{s.Name, s.Doc})
		}
	case "COMPONENT":
		for _, k := range systems.Kinds() {
			for _, c := range systems.Components(k) {
				out = append(out, candidate{c.Name, c.Doc})
			}
		}
	case "PAPER":
		for k := range papers {
			out = append(out, candidate{papers[k].Name, papers[k].Title})
		}
	case "SCHEMA":
		for _, name := range docs.Schemas() {
			out = append(out, candidate{name, "kind of file"})
		}
	case "APP":
		for _, name := range appNames(e, fs) {
			out = append(out, candidate{name, "app"})
		}
	case "FUNCTION":
		for _, name := range functionNames(e, fs) {
			out = append(out, candidate{name, "function"})
		}
	}
	return out
}

// functionNames are the functions of the server that a command line means; none without one.
func functionNames(e *Env, fs *flag.FlagSet) (names []string) {
	ctx, done := context.WithTimeout(e.Context, quickAnswer)
	defer done()
	own := flag.NewFlagSet("", flag.ContinueOnError)
	client := clientFlags(own)
	fs.Visit(func(f *flag.Flag) {
		if own.Lookup(f.Name) != nil {
			_ = own.Set(f.Name, f.Value.String())
		}
	})
	c, err := client(e)
	if err != nil {
		return nil
	}
	all, err := c.List(ctx)
	if err != nil {
		return nil
	}
	for k := range all {
		names = append(names, all[k].Name)
	}
	return names
}

// quickAnswer is how long completion waits for a server.
const quickAnswer = 300 * time.Millisecond

// appNames are the apps of the configuration and of the server that a command line means.
func appNames(e *Env, fs *flag.FlagSet) (names []string) {
	file := "sluice.yaml"
	if f := fs.Lookup("f"); f != nil && f.Value.String() != "" {
		file = f.Value.String()
	}
	if f, err := config.Load(file); err == nil {
		for k := range f.Apps {
			names = append(names, f.Apps[k].Name)
		}
	}
	server := "localhost:8000"
	for _, name := range []string{"url", "u"} {
		if f := fs.Lookup(name); f != nil && !strings.HasPrefix(f.Value.String(), "grpc") && f.Value.String() != "" {
			server = f.Value.String()
		}
	}
	names = append(names, servedNames(e, serverURL(server))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// servedNames are the models of a running server; none without one.
func servedNames(e *Env, base string) []string {
	ctx, done := context.WithTimeout(e.Context, quickAnswer)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models", nil)
	if err != nil {
		return nil
	}
	authorize(r, e.Getenv("SLUICE_TOKEN"))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var list struct{ Models []string }
	if json.NewDecoder(io.LimitReader(answer.Body, largestNames)).Decode(&list) != nil {
		return nil
	}
	return list.Models
}

// largestNames bounds the list of models that is read, in bytes.
const largestNames = 1 << 20
