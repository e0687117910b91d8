// Package front answers the Open Inference Protocol for a whole fleet, over HTTP and gRPC: it hands a query to the cell
// that serves its app, in this process or in the pod that holds the cell.
//
// A query is passed on once at most. One whose cell nobody serves at the moment waits for a while. A query that was
// sent to a pod which then died is answered with an error that says to try again; it is not sent twice, unless the pod
// said that it had not begun.
package front
