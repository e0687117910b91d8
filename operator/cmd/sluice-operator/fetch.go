package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/fetch"
)

func init() {
	register(command{"fetch", "put models into a folder, with their digests checked", runFetch})
}

// Bounds of the command. A ConfigMap that has changed reaches a running pod within about a minute.
const (
	namedWithin   = 100 * time.Second
	namedEvery    = 2 * time.Second
	messageLength = 4000 // bytes that Kubernetes keeps of a termination message
)

// runFetch puts models into a repository. Those that cannot be had are errors; with --best-effort they are written into
// the termination message alone, as {"failed": {NAME: WHY}}, since they are failures of the models and not of the
// machine.
func runFetch(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("fetch", flag.ContinueOnError)
	var c fetch.Config
	to := fs.String("to", "", "`folder` that the models are put into, each in a folder of its name")
	machines := fs.String("machines", "", "`file` machines.json that says where models are")
	uri := fs.String("uri", "", "`URI` of the one model that is named; instead of --machines")
	digest := fs.String("digest", "", "`sha256` of the file or archive at --uri")
	secret := fs.String("secret", "", "`name` of the secret that --uri needs")
	fs.StringVar(&c.Claims, "claims", "", "`folder` of volumes, by the names of their claims")
	fs.StringVar(&c.Secrets, "secrets", "", "`folder` of secrets, by their names")
	fs.StringVar(&c.Cache, "cache", os.Getenv("SLUICE_MODEL_CACHE"), "`folder` that workers of a machine share")
	fs.Int64Var(&c.CacheBytes, "cache-bytes", 0, "most `bytes` that the cache holds; 0 for no limit")
	fs.Int64Var(&c.Bytes, "bytes", fetch.DefaultBytes, "most `bytes` of a model")
	fs.DurationVar(&c.Timeout, "timeout", fetch.DefaultTimeout, "`time` for a model")
	bestEffort := fs.Bool("best-effort", false, "models that cannot be had are no failure of this command")
	message := fs.String("termination-log", "", "`file` to write what failed into")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case *to == "":
		return errors.New("fetch: --to is missing: where are the models to be put?")
	case *uri != "" && fs.NArg() != 1:
		return errors.New("fetch: --uri is for one model, which is named")
	case *uri == "" && *machines == "" && fs.NArg() > 0:
		return errors.New("fetch: where are the models? Give --uri or --machines")
	}
	if err := os.MkdirAll(*to, 0o755); err != nil {
		return err
	}
	f := fetch.New(c)
	failed := make(map[string]string)
	var errs []error
	for _, name := range fs.Args() {
		m := fetch.Model{URI: *uri, SHA256: *digest, Secret: *secret}
		var err error
		if m.URI == "" {
			m, err = modelOf(ctx, *machines, name)
		}
		if err == nil {
			err = f.Fetch(ctx, name, m, *to)
		}
		if err != nil {
			failed[name] = err.Error()
			errs = append(errs, err)
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		fmt.Fprintln(os.Stderr, "fetched", name)
	}
	if *message != "" && len(failed) > 0 {
		if err := os.WriteFile(*message, terminationMessage(failed), 0o644); err != nil {
			errs = append(errs, err)
		}
	}
	if *bestEffort {
		return ctx.Err()
	}
	return errors.Join(errs...)
}

// modelOf looks a model up in a machines.json. One that was just added may reach it a little later.
func modelOf(ctx context.Context, file, name string) (fetch.Model, error) {
	ctx, cancel := context.WithTimeout(ctx, namedWithin)
	defer cancel()
	for {
		text, err := os.ReadFile(file)
		if err != nil {
			return fetch.Model{}, err
		}
		m, err := cell.Decode(string(text))
		if err != nil {
			return fetch.Model{}, err
		}
		if x, ok := m.Models[name]; ok {
			return fetch.Model{URI: x.URI, SHA256: x.SHA256, Secret: x.Secret}, nil
		}
		select {
		case <-ctx.Done():
			return fetch.Model{}, fmt.Errorf("model %s: %s does not say where it is", name, file)
		case <-time.After(namedEvery):
		}
	}
}

// terminationMessage is what failed, cut so that it stays readable JSON of the length that is kept.
func terminationMessage(failed map[string]string) []byte {
	for most := messageLength / len(failed); ; most /= 2 {
		short := make(map[string]string)
		for name, why := range failed {
			short[name] = why[:min(len(why), most)]
		}
		text, err := json.Marshal(map[string]any{"failed": short})
		if err == nil && len(text) <= messageLength || most == 0 {
			return text
		}
	}
}
