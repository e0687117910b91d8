// Package hosttest has the configurations and models that tests of packages below host share.
package hosttest
