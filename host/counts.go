package host

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Most items of a kind that a module may have, links apart. Each takes the host's memory
// when the module is loaded, up to a kilobyte for a few bytes of the binary, and globals
// time after each call. What toolchains build stays far below.
const (
	maxTypes    = 50_000
	maxImports  = 10_000
	maxFuncs    = 250_000
	maxTables   = 100
	maxGlobals  = 10_000
	maxExports  = 100_000
	maxSections = 10_000
)

// countProblems refuses modules that are made of too many pieces.
func countProblems(m *wasm.Module) []problem {
	var out []problem
	for _, c := range []struct {
		what    string
		n, most int
	}{
		{"types", len(m.Types), maxTypes},
		{"imports", len(m.Imports), maxImports},
		{"functions", len(m.Funcs), maxFuncs},
		{"tables", len(m.Tables), maxTables},
		{"globals", m.Globals, maxGlobals},
		{"exports", len(m.Exports), maxExports},
		{"sections", len(m.Sections), maxSections},
	} {
		if c.n > c.most {
			out = append(out, problem{
				fmt.Sprintf("has %d %s, and %d are allowed", c.n, c.what, c.most),
				"build it with fewer, or as several modules", ErrLimit,
			})
		}
	}
	return out
}
