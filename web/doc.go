// Package web is the dashboard's page: TypeScript below src, built by `make web` into dist, which is committed.
//
// The built page is in the repository so that `go build` and `go install` need no npm. It is small, the build is
// reproducible, and dist/sources.sum holds a checksum of what it was built from, which a test compares.
package web
