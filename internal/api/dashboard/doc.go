// Package dashboard answers a dashboard's questions over HTTP: JSON with a schema version, and a stream of server-sent
// events. It reads a board and decides nothing. docs/dashboard.md describes the API.
//
// The stream is made once for all readers. A reader that is too slow loses events and is told to begin anew; it never
// slows the engine or another reader.
package dashboard
