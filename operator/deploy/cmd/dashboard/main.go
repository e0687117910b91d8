// Command dashboard writes chart/files/dashboard.json anew, from docs/metrics.md. It is run in operator/deploy.
package main

import (
	"fmt"
	"os"

	"github.com/sluice-serving/sluice/operator/deploy/dashboard"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		return err
	}
	series, err := dashboard.Parse(string(page))
	if err != nil {
		return err
	}
	text, err := dashboard.Make(series)
	if err != nil {
		return err
	}
	return os.WriteFile("chart/files/dashboard.json", text, 0o644)
}
