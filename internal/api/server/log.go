package server

import (
	"log"
	"log/slog"
)

// debugLogger logs errors of connections, such as broken handshakes, at the debug level: clients can cause any number
// of them.
func debugLogger(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
