package guest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
)

// ErrNotGranted means that a guest cannot do without something that the operator
// did not grant.
var ErrNotGranted = errors.New("asks for what is not granted")

// Access is what a guest was granted, and how that compares with what it asks for.
type Access struct {
	// Granted has an entry for each capability of the grants.
	Granted []string
	// Notes are sentences without their subject, which is the guest: what was
	// granted without being asked for, what was asked for and is optional, and what
	// reaches further than the grant.
	Notes []string
}

// CheckGrants compares what the guest asks for with what it is granted. The error is
// [ErrNotGranted] and has the line that the operator may write; it names all that is missing.
func (g *Guest) CheckGrants(grants host.Grants) (Access, error) {
	var out Access
	var missing []abi.Capability
	for _, c := range capabilities() {
		there, covers := c.granted(&grants)
		n := slices.IndexFunc(g.desc.Capabilities, func(a abi.Capability) bool { return a.Name == c.name })
		if there {
			out.Granted = append(out.Granted, c.show(covers))
		}
		switch {
		case there && n < 0:
			out.note("is granted %s and does not ask for it; take the grant away unless something needs it", c.name)
		case there:
			out.compare(&c, covers, g.desc.Capabilities[n].Scope)
		case n >= 0 && g.desc.Capabilities[n].Optional:
			out.note("asks for %s%s, which is optional and not granted", c.name, because(g.desc.Capabilities[n].Reason))
		case n >= 0:
			missing = append(missing, g.desc.Capabilities[n])
		}
	}
	for _, f := range grants.Functions {
		out.Granted = append(out.Granted, fmt.Sprintf("function (%.64q)", f.Name))
	}
	if len(missing) > 0 {
		return out, fmt.Errorf("guest: module %q: %w: plugin %q asks for %s", g.Module(), ErrNotGranted, g.desc.Name, wanted(missing))
	}
	return out, nil
}

func (a *Access) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// compare notes the part of a scope that the grant does not cover.
func (a *Access) compare(c *capability, covers, scope []string) {
	if c.covers == nil || len(covers) == 0 {
		return
	}
	var beyond []string
	for _, asked := range scope {
		if !slices.ContainsFunc(covers, func(granted string) bool { return c.covers(granted, asked) }) {
			beyond = append(beyond, asked)
		}
	}
	if len(beyond) > 0 {
		a.note("asks for %s, which is beyond the grant %s", c.show(beyond), c.show(covers))
	}
}

// wanted words what is missing and what to write for it.
func wanted(missing []abi.Capability) string {
	var asked, lines, fields []string
	for _, m := range missing {
		asked = append(asked, m.Name+because(m.Reason))
		n := slices.IndexFunc(capabilities(), func(c capability) bool { return c.name == m.Name })
		c := capabilities()[n]
		fields = append(fields, c.field)
		if c.line != nil {
			lines = append(lines, c.line(m.Scope))
		}
	}
	hint := "set " + strings.Join(fields, ", ")
	if len(lines) == len(missing) {
		hint = "write grants: {" + strings.Join(lines, ", ") + "} (in Go: " + strings.Join(fields, ", ") + ")"
	}
	return strings.Join(asked, ", ") + "; to let it, " + hint
}

// because is the guest's own reason.
func because(reason string) string {
	if reason == "" {
		return " (it gives no reason)"
	}
	return fmt.Sprintf(" (it says: %q)", reason)
}
