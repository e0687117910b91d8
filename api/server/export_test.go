package server

// Held is what requests hold of the memory budget, in bytes.
func (s *Server) Held() int64 { return s.memory.used.Load() }
