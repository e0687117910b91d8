package config

import (
	"net"
	"slices"
)

// Finding is something that is open, and the lines to write.
type Finding struct {
	Field string // where it is decided
	Open  string // what anybody can do
	Write string // what closes it, as YAML
}

// Production lists what is open in a configuration that faces strangers. A finding may be meant so: it is no error.
func (f *File) Production() (out []Finding) {
	find := func(field, open, write string) { out = append(out, Finding{field, open, write}) }
	s, a := &f.Server, &f.Access
	public := reachable(s.HTTP) || reachable(s.GRPC)
	if !a.Identifies() {
		find("access", "nobody has to say who it is: everybody who reaches the server reads and infers",
			"access: {keys: access.keys}    # sluice key NAME >> access.keys")
	} else {
		for _, r := range a.Anonymous {
			find("access.anonymous", "callers who show nothing may "+r, "access: {anonymous: []}")
		}
	}
	if public && s.TLS.Cert == "" {
		find("server.tls", "queries, answers and keys cross the network unencrypted",
			"server: {tls: {cert: server.pem, key: server.key}}")
	}
	if reachable(s.Admin) && !s.TLS.Admin {
		find("server.tls.admin", "administration crosses the network unencrypted", "server: {tls: {admin: true}}")
	}
	if s.ModelControl {
		find("server.model_control", "everybody who reaches the server loads and unloads models",
			"server: {model_control: false}")
	}
	if s.PublicMetrics {
		find("server.public_metrics", "whoever may look reads metrics on the HTTP address",
			"server: {public_metrics: false}")
	}
	if s.Reflection {
		find("server.reflection", "gRPC describes its services to everybody", "server: {reflection: false}")
	}
	if slices.Contains(s.Origins, "*") {
		find("server.origins", "pages of every web site may call", "server: {origins: [https://YOUR.SITE]}")
	}
	if s.SharedMemory == "/" {
		find("server.shared_memory", "clients on this machine have any shared memory object read and written",
			"server: {shared_memory: /sluice-}")
	}
	if len(f.Tenants) == 0 {
		find("tenants", "one client's overload takes the others' answers", "tenants: [{name: default}, {name: NAME}]")
	}
	for i, t := range f.Tenants {
		if t.Rate == 0 && t.Concurrency == 0 {
			find(at("tenants", i),
				"tenant "+t.Name+" may send as much as it likes, and memory for requests is everybody's",
				"tenants: [{name: "+t.Name+", rate: 100, concurrency: 64}]")
		}
	}
	if a.Audit == "" {
		find("access.audit", "who changed what is in the server's log alone", "access: {audit: audit.jsonl}")
	}
	for i, w := range f.Workers {
		if w.Backend.Kind == "openinference" && !w.Backend.TLS && slices.ContainsFunc(
			append(slices.Clone(w.Backend.Addresses), w.Backend.Address), reachable) {
			find(at("workers", i)+".backend.tls", "queries reach worker "+w.Name+" unencrypted", "backend: {tls: true}")
		}
	}
	return out
}

// reachable reports whether an address is one that other machines reach, or are reached at.
func reachable(address string) bool {
	if address == "" || address == "off" {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	return err != nil || !isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
