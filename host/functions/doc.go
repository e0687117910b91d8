// Package functions deploys models to a running server, replaces and deletes them. It checks what is sent, keeps it in
// the store, adds it to the server's spec, and answers over the admin port. A Predictor finds out how long a new model
// takes.
package functions
