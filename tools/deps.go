//go:build deps

// Package deps pins the project's direct dependencies while packages are being laid down.
package deps

import (
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/yalue/onnxruntime_go"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/image/font"
	_ "golang.org/x/image/font/opentype"
	_ "golang.org/x/net/netutil"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/stat/distuv"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/vg/vgimg"
	_ "gonum.org/v1/plot/vg/vgsvg"
	_ "google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	_ "google.golang.org/grpc/reflection"
	_ "google.golang.org/protobuf/proto"
	_ "codeberg.org/go-fonts/liberation/liberationsansregular"
	_ "codeberg.org/go-fonts/latin-modern/lmroman10regular"
)
