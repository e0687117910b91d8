// Package store keeps what must survive a run in files.
package store
