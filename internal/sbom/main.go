// Sbom writes what a program is made of, as CycloneDX 1.6: the modules that a binary was built from, and the packages
// of an npm lock file. The same inputs give the same bytes: it writes no time and no serial number.
//
//	go run ./internal/sbom BINARY package-lock.json [VERSION] > sbom.json
//
// VERSION is that of a release; without it the version is the one that the binary was built with.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// bill is the part of a CycloneDX document that is written.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY package-lock.json [VERSION]")
		os.Exit(2)
	}
	version := ""
	if len(os.Args) == 4 {
		version = os.Args[3]
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2], version); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(to io.Writer, binary, lock, version string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	if version == "" {
		version = info.Main.Version
	}
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{
		component{
			Type: "application", Name: info.Main.Path, Version: version,
			PURL: "pkg:golang/" + info.Main.Path + "@" + version,
		},
	}}
	b.Components = append(b.Components, component{
		Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, component{
			Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version,
		})
	}
	packages, err := locked(lock)
	if err != nil {
		return err
	}
	b.Components = append(b.Components, packages...)
	out := json.NewEncoder(to)
	out.SetIndent("", "  ")
	return out.Encode(b)
}

// locked returns the packages of an npm lock file.
func locked(path string) (out []component, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, at := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[at]
		cut := strings.LastIndex(at, "node_modules/")
		if cut < 0 {
			continue // the project itself
		}
		name := at[cut+len("node_modules/"):]
		sum, ok := strings.CutPrefix(p.Integrity, "sha512-")
		raw, err := base64.StdEncoding.DecodeString(sum)
		if !ok || err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %s has no SHA-512 sum", path, at), err)
		}
		out = append(out, component{
			Type: "library", Name: name, Version: p.Version,
			PURL:   "pkg:npm/" + strings.ReplaceAll(name, "@", "%40") + "@" + p.Version,
			Hashes: []hash{{"SHA-512", hex.EncodeToString(raw)}},
		})
	}
	return out, nil
}
