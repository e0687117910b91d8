// Package training makes the models of the demonstration: it trains networks on the pictures that package digits draws,
// measures how often they are right on held-out ones, and writes what the program then carries. `sluice demo --train`
// runs it; nothing else that ships does.
//
// Networks are trained on small pictures, which is fast, and run on large ones, which takes most of the time.
//
// The same seed gives the same bytes on x86 processors with AVX2 and FMA. On others rounding differs, and so do weights
// and accuracies, a little.
package training
