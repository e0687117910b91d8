// Package controller holds the operator's reconcilers: of a fleet's resources they make cells, dispatchers and what
// protects them, measure new variants, and say in the resources' status what there is.
//
// A reconciler writes only what differs from what its cache shows. What it needs to know of its own past is in the API.
package controller
