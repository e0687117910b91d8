package loadgen

import (
	"context"
	"net/http"

	"google.golang.org/grpc/metadata"
)

type tokenKey struct{}

// WithToken returns a context whose queries show an API key or a token; "" shows none.
func WithToken(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return context.WithValue(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), tokenKey{}, token)
}

// authorize adds the token of a context to a request over HTTP.
func authorize(ctx context.Context, r *http.Request) {
	if token, ok := ctx.Value(tokenKey{}).(string); ok {
		r.Header.Set("Authorization", "Bearer "+token)
	}
}
