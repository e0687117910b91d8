// Package bound computes the fluid bound, which no rule of scheduling and planning can exceed in a world. It is a
// linear program over the time of machines. Every run of every system is a feasible point of the program. So no run has
// a higher utility, or a lower cost at the same service, than the program's optimum.
//
// Time is cut into windows. Queries are alike (a class) when they are of one app, have the same requirements, about the
// same size and time to their deadline, and arrive in one window i and are due in one window j. A path p gives each
// stage of an app one of its variants.
//
//	y_cp  queries of class c that are served in time by path p
//	u_gw  items that group g is served in window w. A group is a variant with what its queries allow: the device types
//	      on which a batch of them can be in time, and the windows i..j
//	z_gkw seconds that machines of kind k spend on group g in window w
//	r_vkw machines of kind k that hold variant v in window w (only where memory binds)
//
//	maximise    sum_cp weight accuracy_p/best y_cp          utility: accuracy relative to the app's best, in time
//	subject to  sum_p y_cp           <= queries of c             each query once
//	            sum_cp items_cs y_cp <= sum_w u_gw               the work of a stage is done: p(s) is g's variant
//	            u_gw                 <= sum_k rate_gk z_gkw      by machines, in windows from arrival to deadline
//	            sum_g share_g z_gkw  <= machines_k * length_w    which have no more than their time
//	            sum_g z_gkw of v     <= r_vkw * length_w         and hold what they run
//	            sum_v memory_v r_vkw <= memory_k machines_k
//
// rate_gk is the most items in time that a second of a machine gives: the largest of n*batch/time over batch sizes that
// end within the objective and numbers n of batches that run at once. Mixtures of variants within a query are covered:
// the accuracy of a query is the product over its stages of a mean, which a mixture of paths has as well. share is 1
// for a whole machine, and for a part of one its threads, or its per cent of an accelerator, of the machine's.
//
// If machines are rented, the program minimises the cost instead: machines_k becomes a variable with a price, all
// queries but a share must be served, and the mean accuracy of every app must reach its target (Cost).
//
// By foresight (Options.Foresight) the bound is that of rules which know every arrival in advance. The program then
// counts more of what these very arrivals allow:
//
//   - Batches hold only queries that can meet: those that arrive within the time to a deadline, less what the batch and
//     the other stages on the way take at least. A class has the rates of the largest batches that any of its queries
//     can be in (crowd.go). Queries that come alone are told apart from those that come in clumps.
//   - The stages of a graph share the time of a query. A column is a class, a path and a division of its time between
//     the stages. A stage has the rates of batches that fit into its part (split.go). Batches count with their times
//     rounded down to a 24th of the objective.
//   - A window is a quarter of the longest time to a deadline.
//
// The program leaves out everything that can only lower the utility: batches are whole, queries come one by one,
// variants take time to load, and the future is not known. It needs the mean run times of batches. If a run's batches
// happened to be faster, its bound is computed with their times (Model.Speed).
package bound
