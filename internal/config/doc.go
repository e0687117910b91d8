// Package config reads sluice.yaml: one file with the machines, the models, the apps with their objectives and the
// system that serves them. It reports all problems of a file at once, each with the field's path and line. Resolve
// turns a file into a serving.Spec and related tables.
package config
