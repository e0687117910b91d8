// Package provider is the port for machine supply: it says how machines are had for the workers of a configuration, and
// how news of them comes back. It knows neither Kubernetes nor rules: what is acquired is decided by plans.
package provider
