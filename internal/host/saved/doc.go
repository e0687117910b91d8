// Package saved shows runs that have ended, from their files, in the dashboard of a server.
package saved
