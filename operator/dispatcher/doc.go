// Package dispatcher is a replica of a fleet's front ends. Each replica answers for all apps of the fleet; the engines
// behind them are given to the replicas by cell, so that none is a single point of failure.
//
//   - cells: which replica holds which cell, by leases.
//   - runner: a run of sluice's host for each cell that this replica holds.
//   - peertls: how replicas know one another over TLS.
//   - front: queries over HTTP and gRPC, answered here or passed on to the replica that holds the cell.
//   - status: what the API server shows of the cells and their apps.
//
// Nothing that must survive is in a replica only: the configuration and who serves it are in the API server, the rates
// that a plan is made for are in the status of the apps, what was learned beyond that is in the fleet's store.
package dispatcher
