// Package cells decides which dispatcher holds which cell of a fleet, by Leases of the API server.
//
// A cell's Lease says who serves it and at which addresses. A holder renews it about once a second. Others judge by
// their own clock alone how long a Lease has not changed, so clocks may differ between machines; what a Lease says of
// time is never read. A holder that cannot reach the API server goes on: nobody else can take its cells, either. One
// that sees another holder stops at once.
package cells
