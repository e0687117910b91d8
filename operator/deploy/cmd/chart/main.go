// Command chart packs sluice's chart for a release, see scripts/release.sh.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/operator/deploy/image"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: chart FOLDER VERSION ARCHIVE OCI (of the time SOURCE_DATE_EPOCH)")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(folder, version, archive, oci string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	packed, layout, err := image.Chart(folder, version, time.Unix(seconds, 0))
	if err != nil {
		return err
	}
	if err := os.WriteFile(archive, packed, 0o644); err != nil {
		return err
	}
	return os.WriteFile(oci, layout, 0o644)
}
