// Package rules has the scaler of Scrooge, which follows the content of queries.
package rules
