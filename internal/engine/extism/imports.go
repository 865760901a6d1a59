package extism

import (
	extism "github.com/extism/go-sdk"

	"github.com/mortise-dev/mortise/internal/engine"
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
func (p *extismProgram) imported(l engine.Linked) ([]byte, error) {
	own, user := map[string]bool{}, map[[2]string]bool{}
	for _, f := range p.OfEnv() {
		own[f.Name] = true
	}
	for module, all := range p.ByModule() {
		for _, f := range all {
			user[[2]string{module, f.Name}] = module != engine.ModuleHost
		}
	}
	return wasm.RenameImports(l.Parsed, l.Wasm, func(module, name string) (string, string) {
		if user[[2]string{module, name}] {
			return prefixUser + module, name
		}
		if module == engine.ModuleEnv && own[name] {
			return prefixEnv + module, name
		}
		return module, name
	})
}

// functions are all host functions that the guest may import beyond those of
// go-sdk.
func (p *extismProgram) functions() []extism.HostFunction {
	out := bulkFunctions()
	for _, f := range p.OfEnv() {
		out = append(out, extismFunction(prefixEnv+engine.ModuleEnv, f))
	}
	for module, all := range p.ByModule() {
		for _, f := range all {
			if module == engine.ModuleHost {
				out = append(out, extismFunction(module, f))
				continue
			}
			out = append(out, extismFunction(prefixUser+module, f))
		}
	}
	return out
}
