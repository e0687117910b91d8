// Package pipeline holds the rules of an app's graph of stages: which stage feeds which, when a stage has its input,
// how many items it works on, and which tensor a name means there. The engine, the data plane and the configuration
// follow the same rules by using this package.
package pipeline
