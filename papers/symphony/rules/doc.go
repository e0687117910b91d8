// Package rules has the router of Symphony (arXiv 2308.07470).
package rules
