// Package access answers who a caller is and what it may do: one gate for HTTP, gRPC and administration. It reads API
// keys, tokens of an issuer (JWT) and client certificates, knows the roles and the limits of tenants, and writes down
// what was changed by whom. It knows nothing of serving. Secrets are compared in constant time and never written.
package access
