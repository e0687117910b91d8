// Command image makes sluice's OCI image of programs that were built, see scripts/image.sh.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/sluice-serving/sluice/operator/deploy/image"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var c image.Contents
	flags.StringVar(&c.Sluice, "sluice", "", "program sluice")
	flags.StringVar(&c.Operator, "operator", "", "program sluice-operator")
	flags.StringVar(&c.ONNXRuntime, "onnxruntime", "", "libonnxruntime")
	flags.StringVar(&c.Authorities, "authorities", "/etc/ssl/certs/ca-certificates.crt", "PEM file to trust")
	flags.StringVar(&c.Sysroot, "sysroot", "", "folder of the C libraries of another kind of machine")
	flags.StringVar(&c.Version, "version", "dev", "version in the labels, and tag")
	repository := flags.String("repository", "ghcr.io/sluice-serving/sluice", "name of the image")
	out := flags.String("o", "", "folder to write to: the OCI layout `oci`, and `image.tar` for docker load")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("name a folder with -o")
	}
	made, err := image.Build(c)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(*repository + ":" + c.Version)
	if err != nil {
		return err
	}
	folder := filepath.Join(*out, "oci")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendImage(made, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": c.Version})); err != nil {
		return err
	}
	if err := tarball.WriteToFile(filepath.Join(*out, "image.tar"), tag, made); err != nil {
		return err
	}
	digest, err := made.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", *repository, digest)
	return nil
}
