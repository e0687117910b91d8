// Package ruletest has fleets and views for tests of routers and batchers.
package ruletest
