// Package device finds the accelerators of this machine, reads how they are (memory, clocks, what holds the clocks
// down, power, processes), and says which of them a worker's instances use.
//
// It asks nvidia-smi, which every driver brings, rather than the library NVML below it. NVML's binding for Go leaves
// some two thousand names unresolved until the library is there. A program linked with them does not start where the
// linker resolves names at once, as that of several distributions does, and sluice starts on any machine.
package device
