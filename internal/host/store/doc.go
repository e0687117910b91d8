// Package store keeps data in files that must survive a run: deployed functions and their models, policies, states of
// streams, idle times, times of operators.
package store
