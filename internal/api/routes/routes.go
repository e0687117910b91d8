// Package routes has an http.ServeMux that lists what it serves, so that a document of it can be held against it.
package routes

import "net/http"

// Mux is a ServeMux that lists its patterns.
type Mux struct {
	http.ServeMux
	patterns []string
}

// Handle is ServeMux.Handle. A Mux below another one is listed by its own patterns.
func (m *Mux) Handle(pattern string, h http.Handler) {
	if below, ok := h.(*Mux); ok {
		m.patterns = append(m.patterns, below.patterns...)
	} else {
		m.patterns = append(m.patterns, pattern)
	}
	m.ServeMux.Handle(pattern, h)
}

// HandleFunc is ServeMux.HandleFunc.
func (m *Mux) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}

// Patterns lists the patterns, in the order in which they were added. The slice is shared: do not change it.
func (m *Mux) Patterns() []string { return m.patterns }
