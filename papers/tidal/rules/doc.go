// Package rules has the router of tidal.
package rules
