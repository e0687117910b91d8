package host

import (
	"runtime/debug"

	"github.com/sluice-serving/sluice/internal/api/server"
)

// module is the path of this module in the build information of a program.
const module = "github.com/sluice-serving/sluice"

// version takes precedence over the build information. It is set by
//
//	go build -ldflags "-X github.com/sluice-serving/sluice/internal/host.version=v1.2.3"
var version string

// Version returns the version of the sluice module, also in a program that embeds it. In a build from a checkout
// without a version it is the revision, with "+dirty" appended when files had been changed. Otherwise it is
// server.Unversioned. Servers report it in their metadata.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionOf(info)
	}
	return server.Unversioned
}

// versionOf returns the version by the build information.
func versionOf(info *debug.BuildInfo) string {
	for _, d := range info.Deps {
		if d.Path == module {
			if d.Replace != nil {
				d = d.Replace
			}
			return knownVersion(d.Version)
		}
	}
	if info.Main.Path != module || knownVersion(info.Main.Version) != server.Unversioned {
		return knownVersion(info.Main.Version)
	}
	if revision := revisionOf(info); revision != "" {
		return revision
	}
	return server.Unversioned
}

// Revision returns the commit that the program was built from, with "+dirty" appended when files had been changed. It
// is "" in a build that is not from a checkout.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return revisionOf(info)
}

func revisionOf(info *debug.BuildInfo) string {
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
		return ""
	}
	return revision + changed
}

// knownVersion returns version, or server.Unversioned if it is the go command's word for none.
func knownVersion(version string) string {
	if version == "" || version == "(devel)" {
		return server.Unversioned
	}
	return version
}
