package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/functions"
)

func deployCommand() command {
	return command{
		name: "deploy", summary: "bring a model to a running server as a function", usage: "-f fn.yaml",
		about: `
Sends the model that a fn.yaml names to a running server, which checks it, measures it briefly, keeps it in its
store and serves it under the function's name. Deployed again, a name gets a new version: it is warm before the
old one goes, and queries are answered all the time. The command returns when the new version answers, or when
the server has decided that no instance is needed yet. Interrupted, it takes the deployment back. A file with
stages is a chain of deployed functions under one name (docs/functions.md). With --fleet the function becomes an
InferenceApp of a fleet on Kubernetes, and list, logs and delete take --fleet, too. Exit status:
0 it answers, 1 the server refused it, 3 the fn.yaml or the server's configuration is wrong, 5 it is kept and
does not answer in time, 6 the server did not answer.`,
		examples: "sluice deploy --template > fn.yaml\nsluice deploy -f fn.yaml\n" +
			"sluice deploy --chain-template > chain.yaml\n" +
			"sluice deploy -f fn.yaml --fleet default --uri pvc://models/classify.onnx\n" +
			"sluice deploy -f fn.yaml --admin " +
			"127.0.0.1:9002 --token-file /srv/functions/admin.token",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "fn.yaml", "function `file`")
			template := fs.Bool("template", false,
				"print a fn.yaml with every setting and a remark on each, and do nothing else")
			chain := fs.Bool("chain-template", false,
				"print a chain.yaml, of functions one after the other, with remarks, and do nothing else")
			timeout := fs.Duration("wait", time.Minute,
				"how long to wait for the new version to answer; 0s returns at once, a `duration`")
			limit := fs.Duration("timeout", functions.DefaultTimeout,
				"how long the server may measure and plan before it gives the deployment up, a `duration`")
			asJSON := fs.Bool("json", false, "print the function as JSON")
			uri := fs.String("uri", "", "with --fleet: where its machines find the model's file, as pvc://CLAIM/PATH, "+
				"https://HOST/PATH, s3://BUCKET/PATH or file:///PATH in their image; a `place`")
			on := fleetFlags(fs)
			client := clientFlags(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood: the function file goes behind -f", args)
				}
				if *template || *chain {
					text := config.FunctionTemplate()
					if *chain {
						text = config.ChainTemplate()
					}
					_, err := e.Stdout.Write(text)
					return err
				}
				text, err := files.Read(*file, config.MaxBytes)
				if err != nil {
					return err
				}
				if config.IsChain(text) && on.name == "" {
					return deployChain(e, client, text, *file, *timeout, *limit, *asJSON)
				}
				fn, err := config.ParseFunction(text, *file)
				if err != nil {
					return fault.Wrap(fault.Config, err)
				}
				if _, err := os.Stat(fn.Model); err != nil {
					return fault.Errorf(fault.Config, "%s: model: %v", *file, err)
				}
				if on.name != "" {
					return on.deploy(e, fn, *uri, *timeout, *asJSON)
				}
				c, err := client(e)
				if err != nil {
					return err
				}
				s, err := c.Deploy(e.Context, fn.Name, fn.Model, functions.Deployment{
					Python: fn.InPython(), Class: fn.Class,
					LatencyMS: float64(fn.SLO.Latency) / 1e6, Percentile: fn.SLO.Percentile, MaxBatch: fn.MaxBatch,
					MemoryBytes:  int64(fn.Memory),
					MinInstances: fn.MinInstances, MaxInstances: fn.MaxInstances,
					ColdWaitMS: float64(fn.ColdWait) / 1e6, Labels: fn.Labels, Profile: fn.Profile,
					TimeoutMS: float64(*limit) / 1e6,
				})
				if err != nil {
					return classified(err)
				}
				return deployed(e, c, s, *timeout, *asJSON)
			}
		},
	}
}

// deployChain deploys a chain of functions.
func deployChain(e *Env, client func(*Env) (*functions.Client, error), text []byte, file string, timeout,
	limit time.Duration, asJSON bool) error {
	chain, err := config.ParseChain(text, file)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	c, err := client(e)
	if err != nil {
		return err
	}
	s, err := c.DeployChain(e.Context, chain.Name, string(text), float64(limit)/1e6)
	if err != nil {
		return classified(err)
	}
	return deployed(e, c, s, timeout, asJSON)
}

// deployed waits until what was deployed answers, and says so.
func deployed(e *Env, c *functions.Client, s functions.Status, timeout time.Duration, asJSON bool) error {
	s, err := awaitFunction(e.Context, c, s, timeout)
	if err != nil {
		return classified(err)
	}
	if asJSON {
		err = writeJSON(e.Stdout, s)
	} else {
		fmt.Fprintf(e.Stdout, "%s: version %d is %s\n", s.Name, s.Version, s.State)
	}
	if err == nil && timeout > 0 && s.State != functions.Ready && s.State != functions.Idle {
		err = fault.Errorf(fault.Short,
			"version %d of %q does not answer after %v: it is %s; see 'sluice logs %s'",
			s.Version, s.Name, timeout, s.State, s.Name)
	}
	return err
}

// awaitFunction waits until a function answers or needs no instance, at most for timeout.
func awaitFunction(ctx context.Context, c *functions.Client, s functions.Status,
	timeout time.Duration) (functions.Status, error) {
	end := time.Now().Add(timeout)
	for s.State != functions.Ready && s.State != functions.Idle && time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		next, err := c.Get(ctx, s.Name)
		if err != nil {
			return s, err
		}
		if next.Version != s.Version {
			return s, fmt.Errorf("version %d of %q has been replaced by version %d meanwhile", s.Version, s.Name,
				next.Version)
		}
		s = next
	}
	return s, nil
}

// clientFlags declares the flags for reaching a server. Missing ones are taken from the environment, then from the
// server's configuration if there is one.
func clientFlags(fs *flag.FlagSet) func(*Env) (*functions.Client, error) {
	file := fs.String("config", "",
		"the server's sluice.yaml, which says its admin address and token; sluice.yaml where there is one, a `file`")
	address := fs.String("admin", "",
		"admin `address` of the server; $SLUICE_ADMIN, then the configuration's, then "+config.DefaultAdmin)
	tokenFile := fs.String("token-file", "",
		"`file` with the admin token; $SLUICE_TOKEN, which holds the token itself, then the configuration's")
	return func(e *Env) (*functions.Client, error) {
		c := &functions.Client{Address: *address, Token: e.Getenv("SLUICE_TOKEN")}
		if c.Address == "" {
			c.Address = e.Getenv("SLUICE_ADMIN")
		}
		path := *file
		if _, err := os.Stat("sluice.yaml"); path == "" && err == nil {
			path = "sluice.yaml"
		}
		if path != "" {
			f, err := config.Load(path)
			if err != nil {
				return nil, fault.Wrap(fault.Config, err)
			}
			if c.Address == "" {
				c.Address = f.Server.Admin
			}
			if *tokenFile == "" && c.Token == "" {
				*tokenFile = f.Path(f.Server.AdminToken)
			}
		}
		if c.Address == "" {
			c.Address = config.DefaultAdmin
		}
		if c.Address == "off" {
			return nil, fault.Errorf(fault.Config,
				"%s: server.admin is off: functions can be changed through the admin port only", path)
		}
		c.Address = serverURL(c.Address)
		if *tokenFile != "" {
			text, err := files.Read(*tokenFile, 4<<10)
			if err != nil {
				return nil, fault.Errorf(fault.Config, "the admin token: %v: the server makes it when it starts", err)
			}
			c.Token = trimmed(text)
		}
		return c, nil
	}
}

// classified gives the error of a server that does not answer the kind fault.NoServer.
func classified(err error) error {
	if errors.Is(err, functions.ErrUnreachable) {
		return fault.Wrap(fault.NoServer, err)
	}
	return err
}
