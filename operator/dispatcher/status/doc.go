// Package status says what a cell and its apps do, as the status of their resources has it, and writes what has changed
// by server-side apply. Every cell has a field manager of its own, so that whoever serves it next goes on with it.
package status
