package native

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ConfiguredRegistry returns the npm registry that a person has set for npm: by its variable, or in their .npmrc.
func ConfiguredRegistry(getenv func(string) string) string {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if set := getenv(name); set != "" {
			return set
		}
	}
	path := getenv("npm_config_userconfig")
	if path == "" {
		path = filepath.Join(getenv("HOME"), ".npmrc")
	}
	f, err := os.Open(path)
	if err != nil {
		return Registry
	}
	defer f.Close()
	return registryIn(f)
}

// registryIn returns the registry of an .npmrc. The last line wins, as for npm.
func registryIn(file io.Reader) string {
	found := Registry
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if strings.TrimSpace(key) == "registry" && value != "" {
			found = value
		}
	}
	return found
}
