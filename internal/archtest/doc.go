// Package archtest holds the direction of imports as a test: which floor every package stands on, who may not know
// whom, and what deciding code may not touch. Each rule carries the reason that is printed when it is broken.
//
// Only syntax is read (go/parser over the tree), so the rules hold, and can be checked, while a package does not
// compile. Test files are exempt: a test may look at its subject from any floor.
package archtest
