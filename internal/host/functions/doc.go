// Package functions deploys models to a running server, replaces and deletes them. It checks deployments, keeps them in
// the store, adds them to the server's spec, and serves the admin port. A Predictor gets the latencies of a new model.
package functions
