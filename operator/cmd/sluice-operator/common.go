package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
)

// newLog returns a log on standard error from a level on.
func newLog(level string) (*slog.Logger, error) {
	var shown slog.Level
	if err := shown.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: shown})), nil
}

// apiServer says how the API server is reached: as a file says or, with none, as the environment does.
func apiServer(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			return nil, err
		}
	}
	c, err := ctrlconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("the API server's configuration: %w", err)
	}
	return c, nil
}

// words are the entries of a list.
func words(list string) (out []string) {
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}
