package server

import (
	"log"
	"log/slog"
)

// quiet sends what net/http has to say (broken handshakes, clients that vanish) to the debug level: it is the clients'
// doing, and anybody can cause any amount of it.
func quiet(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
