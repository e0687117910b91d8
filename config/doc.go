// Package config reads sluice.yaml: one file that names the machines, the models, the apps with their objectives and
// the system that serves them. It checks everything it can and reports all that is wrong at once, each with the field's
// path and line. Resolve turns a file into a serving.Spec and what belongs to it.
package config
