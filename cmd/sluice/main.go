// Command sluice serves machine-learning models under latency objectives.
package main

import (
	"os"

	"github.com/sluice-serving/sluice/internal/cli"
)

func main() { os.Exit(cli.Main(cli.OS())) }
