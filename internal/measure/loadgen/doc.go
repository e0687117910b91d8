// Package loadgen puts an open-loop load on a server of the Open Inference Protocol: it sends every query at the time
// that the workload gives, whether or not earlier queries have been answered.
//
// The schedule is fixed before the first query is sent, and every latency counts from the scheduled instant. So a
// generator that falls behind shows this in its own numbers instead of hiding the wait (coordinated omission). How far
// behind it was is reported as the send lag.
//
// # Waiting for the right instant
//
// The runtime's timers are exact while the process is busy. An idle process, however, waits in the kernel in whole
// milliseconds. On Linux the sender therefore also arms a timerfd and continues at whichever timer comes first, usually
// some tens of microseconds late. It does not sleep through gaps below 30 us but yields its processor until they have
// passed, and then sends everything that is due. Other systems have only the runtime's timer, and up to a millisecond
// of lag when idle.
package loadgen
