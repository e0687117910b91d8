// Package plot draws reports over time (New), frontiers of accuracy and throughput (NewFrontier), lines and bars
// (Chart) and maps (Heat), as PNG and SVG.
package plot
