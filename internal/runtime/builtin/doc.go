// Package builtin is a dataplane.Backend whose variants are functions of package ops instead of models. It needs no
// files and loads nothing; a run takes one core. A function gains nothing from batches: it takes the parts of a batch
// one by one.
package builtin
