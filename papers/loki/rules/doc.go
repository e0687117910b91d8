// Package rules has the router of Loki (HPDC 2024).
package rules
