// Package server is a running configuration: backends, the data plane, front ends, the dashboard, and the models that
// come and go while it runs.
package server
