// Package rules has the router of PARD (EuroSys 2026, arXiv 2602.08747).
package rules
