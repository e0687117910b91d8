package host

import (
	"runtime/debug"
	"testing"

	"github.com/sluice-serving/sluice/internal/api/server"
)

// The version is that of this module, whichever program it is built into.
func TestVersionOf(t *testing.T) {
	ours := func(v string) debug.Module { return debug.Module{Path: module, Version: v} }
	revision := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123"}}
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a release", debug.BuildInfo{Main: ours("v1.2.3")}, "v1.2.3"},
		{"a release in a checkout", debug.BuildInfo{Main: ours("v1.2.3"), Settings: revision}, "v1.2.3"},
		{"a checkout", debug.BuildInfo{Main: ours("(devel)"), Settings: revision}, "0123456789ab"},
		{"a changed checkout", debug.BuildInfo{
			Main: ours(""), Settings: append(revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
		}, "0123456789ab+dirty"},
		{"a test", debug.BuildInfo{Main: ours("(devel)")}, server.Unversioned},
		{"embedded", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/other", Version: "v9.9.9"}, Settings: revision,
			Deps: []*debug.Module{{Path: "example.com/more", Version: "v8.8.8"}, {Path: module, Version: "v1.2.3"}},
		}, "v1.2.3"},
		{"embedded from a folder", debug.BuildInfo{
			Main: debug.Module{Path: "example.com/other", Version: "v9.9.9"}, Settings: revision,
			Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../sluice"}}},
		}, server.Unversioned},
	} {
		if got := versionOf(&c.info); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
