// Package highs solves mixed-integer linear programs with HiGHS, behind the port of algo/milp. HiGHS is C++, compiled
// to WebAssembly by the npm package highs; the module is embedded and run by wazero, so that there is no C compiler, no
// shared library and nothing to install, and a fault in it is an error here. It sees no file, no network and no real
// clock.
package highs

//go:generate go run gen.go
