// Package archtest tests the direction of imports: the floor of every package, imports that are not allowed, and
// effects that deciding code must not have. Each rule has a reason, which is printed when it is broken.
//
// Only syntax is read (go/parser over the tree), so the rules hold, and can be checked, while a package does not
// compile. Test files are exempt: a test may import packages of any floor.
package archtest
