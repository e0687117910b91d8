package host

import (
	"runtime/debug"

	"github.com/sluice-serving/sluice/api/server"
)

// module is the path under which the program that contains this package lists it.
const module = "github.com/sluice-serving/sluice"

// version wins over what the build recorded. It is set by
//
//	go build -ldflags "-X github.com/sluice-serving/sluice/host.version=v1.2.3"
var version string

// Version is the version of sluice: of the module, in a program that embeds it as well; where it was built from a
// checkout that has none, the revision, with "+dirty" behind it when files had been changed; else server.Unversioned.
// Servers report it in their metadata.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionOf(info)
	}
	return server.Unversioned
}

// versionOf reads what the build recorded.
func versionOf(info *debug.BuildInfo) string {
	for _, d := range info.Deps {
		if d.Path == module {
			if d.Replace != nil {
				d = d.Replace
			}
			return known(d.Version)
		}
	}
	if info.Main.Path != module || known(info.Main.Version) != server.Unversioned {
		return known(info.Main.Version)
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+dirty"
		}
	}
	if revision == "" {
		return server.Unversioned
	}
	return revision + changed
}

// known is a version, or server.Unversioned for what the go command says of none.
func known(version string) string {
	if version == "" || version == "(devel)" {
		return server.Unversioned
	}
	return version
}
