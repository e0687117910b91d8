// Package questions answers what people ask of a copy of a configuration: how recorded arrivals would have been served
// after a change, and what keeps a demand from being carried.
package questions
