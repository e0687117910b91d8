package listen

import (
	"context"
	"net"

	"google.golang.org/grpc"
)

// Net is a network to listen and to connect on. The zero value is the machine's; tests have one in memory.
type Net struct {
	Listener func(address string) (net.Listener, error)
	Dialer   func(ctx context.Context, address string) (net.Conn, error)
}

// Listen binds an address.
func (n Net) Listen(address string) (net.Listener, error) {
	if n.Listener != nil {
		return n.Listener(address)
	}
	return new(net.ListenConfig).Listen(context.Background(), "tcp", address)
}

// GRPC has a client connect over the network.
func (n Net) GRPC() grpc.DialOption {
	if n.Dialer == nil {
		return grpc.EmptyDialOption{}
	}
	return grpc.WithContextDialer(n.Dialer)
}
