// Package rules has the batchers of Proteus and of its baseline Clipper.
package rules
