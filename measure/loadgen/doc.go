// Package loadgen drives a server of the Open Inference Protocol with an open-loop load: queries are sent when the
// workload says, whatever became of the ones before.
//
// The schedule is fixed before the first query is sent, and every latency counts from the scheduled instant. A
// generator that falls behind therefore shows up in its own numbers instead of hiding the wait (coordinated omission);
// how far behind it was is reported as the send lag.
//
// # Waiting for the right instant
//
// The runtime's timers are exact while the process is busy, but an idle process waits in the kernel in whole
// milliseconds. On Linux the sender therefore arms a timerfd beside the runtime's timer and goes on at whichever comes
// first, usually some tens of microseconds late. Gaps below 30 us are not slept at all: the sender yields its processor
// until they have passed, so it never spins for longer than that. Everything that is due by then is sent at once. Other
// systems have the runtime's timer alone, and up to a millisecond of lag when idle.
package loadgen
