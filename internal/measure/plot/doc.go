// Package plot draws reports over time (New), runs of apps side by side (NewApps), and lines and bars (Chart), as PNG
// and SVG.
package plot
