package server

import (
	"context"

	"google.golang.org/grpc/peer"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// fromHere reports whether the caller is on this machine.
func fromHere(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	return ok && p.Addr != nil && isLocal(p.Addr.String())
}

// SystemSharedMemoryStatus implements Triton's extension.
func (g *grpcService) SystemSharedMemoryStatus(ctx context.Context, r *pb.SystemSharedMemoryStatusRequest) (
	*pb.SystemSharedMemoryStatusResponse, error) {
	list, err := g.s.regions.List(r.GetName())
	if err != nil {
		return nil, failure(ctx, err)
	}
	out := &pb.SystemSharedMemoryStatusResponse{
		Regions: make(map[string]*pb.SystemSharedMemoryStatusResponse_RegionStatus, len(list)),
	}
	for _, x := range list {
		out.Regions[x.Name] = &pb.SystemSharedMemoryStatusResponse_RegionStatus{
			Name: x.Name, Key: x.Key, Offset: uint64(x.Offset), ByteSize: uint64(x.Size),
		}
	}
	return out, nil
}

// SystemSharedMemoryRegister implements Triton's extension, for clients on this machine.
func (g *grpcService) SystemSharedMemoryRegister(ctx context.Context, r *pb.SystemSharedMemoryRegisterRequest) (
	*pb.SystemSharedMemoryRegisterResponse, error) {
	var err error = errRegions
	if fromHere(ctx) {
		err = g.s.regions.Register(r.GetName(), r.GetKey(), r.GetOffset(), r.GetByteSize())
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &pb.SystemSharedMemoryRegisterResponse{}, nil
}

// SystemSharedMemoryUnregister implements Triton's extension, for clients on this machine.
func (g *grpcService) SystemSharedMemoryUnregister(ctx context.Context, r *pb.SystemSharedMemoryUnregisterRequest) (
	*pb.SystemSharedMemoryUnregisterResponse, error) {
	if !fromHere(ctx) {
		return nil, failure(ctx, errRegions)
	}
	if err := g.s.regions.Enabled(); err != nil {
		return nil, failure(ctx, err)
	}
	g.s.regions.Unregister(r.GetName())
	return &pb.SystemSharedMemoryUnregisterResponse{}, nil
}

// CudaSharedMemoryStatus implements Triton's extension: there are never regions.
func (g *grpcService) CudaSharedMemoryStatus(context.Context, *pb.CudaSharedMemoryStatusRequest) (
	*pb.CudaSharedMemoryStatusResponse, error) {
	return &pb.CudaSharedMemoryStatusResponse{}, nil
}

// CudaSharedMemoryRegister refuses.
func (g *grpcService) CudaSharedMemoryRegister(ctx context.Context, _ *pb.CudaSharedMemoryRegisterRequest) (
	*pb.CudaSharedMemoryRegisterResponse, error) {
	return nil, failure(ctx, errCUDA)
}

// CudaSharedMemoryUnregister implements Triton's extension: clients unregister before they begin.
func (g *grpcService) CudaSharedMemoryUnregister(context.Context, *pb.CudaSharedMemoryUnregisterRequest) (
	*pb.CudaSharedMemoryUnregisterResponse, error) {
	return &pb.CudaSharedMemoryUnregisterResponse{}, nil
}
