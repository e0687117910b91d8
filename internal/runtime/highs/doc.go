// Package highs solves mixed-integer linear programs with HiGHS. It implements the interface of internal/algo/milp.
// HiGHS is C++, compiled to WebAssembly by the npm package highs. The module is embedded and run by wazero, so no C
// compiler and no shared library are needed, and a crash in it becomes an error. The module has no access to files, the
// network or the real clock.
package highs

//go:generate go run gen.go
