package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// problem is something wrong with a module: how the sentence continues, what to
// do, and which error it is. A nil err means that the module can still be loaded.
type problem struct {
	text, hint string
	err        error
}

// parseProblem words an error of the parser over a binary.
func parseProblem(bin []byte, err error) problem {
	offset := 0
	var pe *wasm.ParseError
	if errors.As(err, &pe) {
		offset = pe.Offset
	}
	cause := fmt.Errorf("%w: %w", ErrNotCore, err)
	switch {
	case errors.Is(err, wasm.ErrLimit):
		return problem{"has " + pe.Detail, "build it with fewer, or as several modules", fmt.Errorf("%w: %w", ErrLimit, err)}
	case errors.Is(err, wasm.ErrMagic) && pe.Detail == "no bytes":
		return problem{"is empty", "build the module again", cause}
	case errors.Is(err, wasm.ErrMagic):
		text, hint := strange(bin)
		return problem{text, hint, cause}
	case errors.Is(err, wasm.ErrComponent):
		return problem{
			"is a WebAssembly component",
			"build a core module (for Rust: --target wasm32-unknown-unknown or wasm32-wasip1)", cause,
		}
	case errors.Is(err, wasm.ErrVersion):
		return problem{"has an unknown version of the WebAssembly format", "build a core module of version 1", cause}
	case errors.Is(err, wasm.ErrTruncated):
		return problem{fmt.Sprintf("is cut off at byte %d", offset), "copy or build it again", cause}
	case errors.Is(err, wasm.ErrUnsupported):
		return problem{
			fmt.Sprintf("uses a feature that is not supported (%s at byte %d)", pe.Detail, offset),
			"build it again without proposals beyond WebAssembly 2.0", cause,
		}
	}
	return problem{"is malformed: " + strings.TrimPrefix(err.Error(), "wasm: "), "build it again with a current toolchain", cause}
}

// problems lists everything wrong with a parsed module. Without grants, as in an
// inspection, it only mentions what would have to be granted.
func problems(m *wasm.Module, pages int, linked links, g *Grants) []problem {
	var out []problem
	switch kindOf(m) {
	case kindOldExtism:
		return []problem{{
			"uses the import names that Extism had before 1.0 (env.extism_...)",
			"build it again with a current Extism PDK", ErrImport,
		}}
	case kindProxyWasm:
		return []problem{{
			"is a proxy-wasm filter",
			"build it as an Extism plugin; proxy-wasm is another convention", ErrImport,
		}}
	case kindCommand:
		out = append(out, problem{
			"is a WASI command: it exports _start and no plugin functions",
			"build it as a reactor (Go: -buildmode=c-shared with //go:wasmexport)", nil,
		})
	case kindUnknown:
		out = append(out, problem{
			"has no function that can be called as a plugin",
			"export a function without parameters that returns an i32", nil,
		})
	default:
	}
	if goCommand(m) {
		out = append(out, problem{
			"is a Go program: it exports _start and no _initialize, so its functions cannot be called",
			"build it with -buildmode=c-shared", ErrExport,
		})
	}
	out = append(out, importProblems(m, linked, g)...)
	return append(out, memoryProblems(m, pages)...)
}

func importProblems(m *wasm.Module, linked links, g *Grants) []problem {
	var out []problem
	for _, im := range m.Imports {
		if linked[im.Module] != nil {
			if bad := linked.importProblem(im); bad != nil {
				out = append(out, *bad)
			}
			continue
		}
		full := engine.Clean(im.Module, engine.MaxName) + "." + engine.Clean(im.Name, engine.MaxName)
		names := offer(im.Module)
		sig, known := names[im.Name]
		if g != nil {
			if f, ok := find(g.Functions, im.Module, im.Name); ok {
				sig, known = f.hostFunc().Type().String(), true
			}
		}
		switch {
		case im.Kind != wasm.KindFunc:
			out = append(out, problem{
				fmt.Sprintf("imports the %s %s, which is not offered", im.Kind, full),
				"define it in the module (for a memory: link without --import-memory)", ErrImport,
			})
		case known && sig != "" && im.Func.String() != sig:
			out = append(out, problem{
				fmt.Sprintf("imports %s as %s, but it is %s", full, im.Func, sig),
				"build it with a PDK of the same version as the host", ErrImport,
			})
		case known:
			out = append(out, grantProblem(full, im, g)...)
		case im.Module == "wasi_unstable":
			out = append(out, problem{
				"imports " + full + " of a WASI before preview 1",
				"build it again for wasm32-wasip1", ErrImport,
			})
		case oldImport(im):
			out = append(out, problem{
				"imports " + full + ", a name that Extism had before 1.0",
				"build it again with a current Extism PDK", ErrImport,
			})
		case names == nil:
			out = append(out, problem{
				"imports " + full + ", which is not offered",
				meant(im.Module, im.Name) + fmt.Sprintf("import only from %s, %s and %s, link a module of that name (Spec.Links), or grant the function (Grants.Functions)", engine.ModuleEnv, engine.ModuleHost, engine.ModuleWASI), ErrImport,
			})
		default:
			out = append(out, problem{
				"imports " + full + ", which is not offered",
				meant(im.Module, im.Name) + "update the host, or build the module with an older PDK", ErrImport,
			})
		}
	}
	return out
}

// grantProblem words the lack of a grant.
func grantProblem(full string, im wasm.Import, g *Grants) []problem {
	grant := needs(im.Module, im.Name)
	if grant == "" || g != nil && g.has(grant, im.Module, im.Name) {
		return nil
	}
	p := problem{
		fmt.Sprintf("imports %s, which needs the capability %s", full, grant),
		fmt.Sprintf("grant it (host/capability/%s) with what it may reach, or use a build of the module without it", grant), ErrImport,
	}
	if g == nil {
		p.err = nil
	}
	return []problem{p}
}

func memoryProblems(m *wasm.Module, pages int) []problem {
	var out []problem
	if len(m.Memories) > 1 {
		out = append(out, problem{"has more than one memory", "build it with one memory", ErrInvalid})
	}
	for _, l := range m.Memories {
		switch {
		case l.Is64:
			out = append(out, problem{"has a 64-bit memory", "build it for wasm32", ErrInvalid})
		case l.Shared && !l.HasMax:
			out = append(out, problem{"has a shared memory without a maximum", "link it with --max-memory", ErrInvalid})
		case l.Shared && l.Max > uint64(max(pages, 0)): // not negative; it is reserved whole
			out = append(out, problem{
				fmt.Sprintf("has a shared memory of up to %d pages and may use %d", l.Max, pages),
				"raise Limits.MemoryPages, or link it with a smaller --max-memory", ErrLimit,
			})
		case l.Min > uint64(max(pages, 0)): // not negative
			out = append(out, problem{
				fmt.Sprintf("needs %d pages of memory at its start and may use %d", l.Min, pages),
				"raise Limits.MemoryPages, or build it with a smaller stack and heap", ErrLimit,
			})
		}
	}
	var elements uint64
	for _, t := range m.Tables {
		elements += min(t.Limits.Min, 2*engine.MaxTableElements)
	}
	if elements > engine.MaxTableElements {
		out = append(out, problem{
			fmt.Sprintf("has tables of more than %d elements", engine.MaxTableElements),
			"build it with smaller tables", ErrLimit,
		})
	}
	return out
}

// required checks the exports that must be there.
func required(m *wasm.Module, names []string) []problem {
	var out []problem
	for _, name := range names {
		shown := engine.Clean(name, engine.MaxName)
		ex, ok := m.Export(name)
		switch {
		case !ok:
			out = append(out, problem{
				fmt.Sprintf("does not export %q", shown),
				"add the function to the plugin, or do not use it for this", ErrExport,
			})
		case ex.Kind != wasm.KindFunc:
			out = append(out, problem{
				fmt.Sprintf("exports %q as a %s", shown, ex.Kind),
				"export a function of that name", ErrExport,
			})
		case ex.Func.String() != pluginSignature:
			out = append(out, problem{
				fmt.Sprintf("exports %q as %s, not %s", shown, ex.Func, pluginSignature),
				"give the function no parameters and an i32 as result", ErrExport,
			})
		}
	}
	return out
}
