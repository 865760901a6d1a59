package bundled

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/bundle"
)

// Prefix is what a name in a config begins with that means a bundled plugin.
const Prefix = "bundled:"

// Names are those of the plugins.
func Names() []string { return []string{"guard", "redact"} }

// Module returns a plugin for plugins.Load or host.Host.Load. An error names the plugins that there are, or means that the
// program's own binary is damaged: the checksum is compared.
func Module(name string) (host.Spec, error) {
	if !slices.Contains(Names(), name) {
		return host.Spec{}, fmt.Errorf("there is no bundled plugin %.64q; it is one of %s", name, strings.Join(Names(), ", "))
	}
	return bundle.Spec(name)
}
