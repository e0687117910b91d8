// Package functions lets models be deployed to a server that runs, replaced and deleted: it checks what is sent, keeps
// it in the store, makes the world grow, and answers over the admin port. How long a new model takes is told by a
// Predictor.
package functions
