package host

import (
	extism "github.com/extism/go-sdk"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// go-sdk answers the imports of Extism by itself, and has no way to replace one:
// its http_request asks for the allowed host once and then follows redirects
// anywhere. So the guest's binary is given other names for what this package
// answers, before go-sdk sees it. The functions of an embedder are renamed too,
// so that none of their modules is taken for one of go-sdk's.
const (
	prefixEnv  = "mortise:extism/"
	prefixUser = "mortise:user/"
)

// imported returns a binary of the guest with the names of this package.
func (p *extismProgram) imported(l linked) ([]byte, error) {
	own := map[string]bool{}
	for _, f := range envFunctions() {
		own[f.name] = true
	}
	return wasm.RenameImports(l.parsed, l.wasm, func(module, name string) (string, string) {
		if _, ok := find(p.caps.functions, module, name); ok {
			return prefixUser + module, name
		}
		if module == moduleEnv && own[name] {
			return prefixEnv + module, name
		}
		return module, name
	})
}

// functions are all host functions that the guest may import beyond those of
// go-sdk.
func (p *extismProgram) functions() []extism.HostFunction {
	out := bulkFunctions()
	for _, f := range envFunctions() {
		out = append(out, extismFunction(prefixEnv+moduleEnv, f))
	}
	for module, all := range p.caps.functionModules() {
		for _, f := range all {
			out = append(out, extismFunction(prefixUser+module, f))
		}
	}
	return out
}
