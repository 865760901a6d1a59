package guest

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/capability/model"
)

// capability is one of the names that a guest may ask for, and what of the
// operator's grants it means.
type capability struct {
	name string
	// field is where an embedder sets it in Go: in host.Grants, or in a package below host/capability.
	field string
	// granted reports whether it is there, and names what it covers.
	granted func(g *host.Grants) (bool, []string)
	// covers reports whether one entry of the grant covers one that is asked for. Nil
	// means that the scope says nothing that could be compared.
	covers func(granted, asked string) bool
	// line is what to write below grants, given what is asked for.
	line func(scope []string) string
}

func capabilities() []capability {
	flag := func(on func(*host.Grants) bool) func(*host.Grants) (bool, []string) {
		return func(g *host.Grants) (bool, []string) { return on(g), nil }
	}
	yes := func(name string) func([]string) string { return func([]string) string { return name + ": true" } }
	return []capability{
		{abi.CapabilityHTTP, "http.Grant", grantedHosts, coversHost, func(scope []string) string {
			return "http: {hosts: " + list(scope, "api.example.com") + "}"
		}},
		{abi.CapabilityKV, "kv.Grant", grantedKV, nil, func([]string) string { return "kv: {path: plugins.db}" }},
		{abi.CapabilityConfig, "Grants.Config", func(g *host.Grants) (bool, []string) {
			return g.Config != nil, slices.Sorted(maps.Keys(g.Config))
		}, nil, func([]string) string { return "values: {KEY: value}" }},
		{abi.CapabilitySecrets, "http.Grant.Secrets", func(g *host.Grants) (bool, []string) {
			h, ok := g.Capability("http").(*http.Grant)
			if !ok {
				return false, nil
			}
			return len(h.Secrets) > 0, slices.Sorted(maps.Keys(h.Secrets))
		}, same, func(scope []string) string {
			name := "NAME"
			if len(scope) > 0 {
				name = strconv.Quote(scope[0])
			}
			return "secrets: {" + name + ": {env: VARIABLE, hosts: [api.example.com]}}"
		}},
		{abi.CapabilityClock, "Grants.Clock", flag(func(g *host.Grants) bool { return g.Clock }), nil, yes("clock")},
		{abi.CapabilityRandom, "Grants.Random", flag(func(g *host.Grants) bool { return g.Random }), nil, yes("random")},
		{abi.CapabilityFS, "fs.Grant", grantedFolders, coversPath, func(scope []string) string {
			at := "/data"
			if len(scope) > 0 {
				at = scope[0]
			}
			return "files: [{host: FOLDER, guest: " + strconv.Quote(at) + "}]"
		}},
		{abi.CapabilityLog, "log.Grant", flag(func(g *host.Grants) bool { _, ok := g.Capability("log").(logcap.Grant); return ok }), nil, yes("log")},
		// No config can name a model: the program that embeds the host brings it.
		{abi.CapabilityModel, "model.Grant", grantedModel, same, nil},
		{abi.CapabilitySticky, "Grants.Sticky", flag(func(g *host.Grants) bool { return g.Sticky }), nil, yes("sticky")},
	}
}

func grantedHosts(g *host.Grants) (bool, []string) {
	h, ok := g.Capability("http").(*http.Grant)
	if !ok {
		return false, nil
	}
	return true, slices.Clone(h.Hosts)
}

// grantedModel names the roles; a model that is asked in bytes has none.
func grantedModel(g *host.Grants) (bool, []string) {
	m, ok := g.Capability("model").(*model.Grant)
	if !ok {
		return false, nil
	}
	return true, slices.Sorted(maps.Keys(m.Roles))
}

func grantedKV(g *host.Grants) (bool, []string) {
	grant, ok := g.Capability("kv").(*kv.Grant)
	if !ok {
		return false, nil
	}
	space := cmp.Or(grant.Namespace, "its own namespace")
	if grant.ReadOnly {
		space += ", read-only"
	}
	return true, []string{space}
}

func grantedFolders(g *host.Grants) (bool, []string) {
	var out []string
	files, ok := g.Capability("fs").(*fs.Grant)
	if !ok {
		return false, nil
	}
	for _, m := range files.Mounts {
		out = append(out, m.Guest)
	}
	return len(out) > 0, out
}

// list is a YAML list of texts, each quoted, so that no text of a guest can be
// anything but a text in it.
func list(texts []string, instead string) string {
	const enough = 8
	if len(texts) == 0 {
		return "[" + instead + "]"
	}
	var quoted []string
	for _, s := range texts[:min(len(texts), enough)] {
		quoted = append(quoted, strconv.Quote(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func same(granted, asked string) bool { return granted == asked }

// coversHost reports whether a host pattern of a grant allows what a guest asks for,
// which may be a pattern, too. It is for a note; the broker decides.
func coversHost(granted, asked string) bool {
	gh, gp := splitPort(granted)
	ah, ap := splitPort(asked)
	if gp != ap && gp != "*" {
		return false
	}
	if gh == "*" || gh == ah {
		return true
	}
	rest, ok := strings.CutPrefix(gh, "*.")
	return ok && strings.HasSuffix(ah, "."+rest)
}

// splitPort splits a host pattern; an address of IPv6 with a port has brackets.
func splitPort(pattern string) (name, port string) {
	name = strings.ToLower(pattern)
	if i := strings.LastIndexByte(name, ':'); i >= 0 && (strings.Count(name, ":") == 1 || name[i-1] == ']') {
		name, port = name[:i], name[i+1:]
	}
	return strings.TrimSuffix(name, "."), port
}

// coversPath reports whether a folder of a grant holds what a guest asks for.
func coversPath(granted, asked string) bool {
	granted, asked = path.Clean(granted), path.Clean(asked)
	return asked == granted || strings.HasPrefix(asked, strings.TrimSuffix(granted, "/")+"/")
}

// show is a capability of a grant in a few words.
func (c *capability) show(covers []string) string {
	if len(covers) == 0 {
		return c.name
	}
	const enough = 4
	text := strings.Join(covers[:min(len(covers), enough)], ", ")
	if len(covers) > enough {
		text += fmt.Sprintf(" and %d more", len(covers)-enough)
	}
	return c.name + " (" + text + ")"
}
