package server

import (
	"context"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// mostOwner bounds the name of a run.
const mostOwner = 64

// Owner returns the run that a call over gRPC names as its own (oip.OwnerHeader) and the address that its connection
// comes from, as Config.Connected gets it. It is "" where the call names none.
func Owner(ctx context.Context) (owner, remote string) {
	named := metadata.ValueFromIncomingContext(ctx, oip.OwnerHeader)
	from, ok := peer.FromContext(ctx)
	if !ok || len(named) != 1 || len(named[0]) > mostOwner {
		return "", ""
	}
	return named[0], from.Addr.String()
}
