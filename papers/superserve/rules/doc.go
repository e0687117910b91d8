// Package rules has SlackFit, the router of SuperServe (NSDI 2025).
package rules
