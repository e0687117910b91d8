// Package plot draws a report's time series: rates, accuracy, latency and batch sizes over time, for one run or for
// several next to each other on the same scales.
package plot
