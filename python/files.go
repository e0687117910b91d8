// Package python holds the Python package sluice-worker, so that a server can start workers without an installation.
package python

import "embed"

// Files are the files of the package, below sluice_worker.
//
//go:embed sluice_worker/*.py sluice_worker/py.typed
var Files embed.FS
