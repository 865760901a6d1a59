package engine

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// ValueType is the type of a parameter or a result of a host function.
type ValueType = wasm.ValueType

// HostFunc is a function that the host offers to guests, on every engine.
type HostFunc struct {
	Module, Name    string
	Params, Results []ValueType
	// Bulk means that it moves bytes and does nothing else that a call has to end with.
	Bulk bool
	Run  func(g Guest, stack []uint64)
}

// Type is the type of the function in a module.
func (f HostFunc) Type() wasm.FuncType { return wasm.FuncType{Params: f.Params, Results: f.Results} }

// APITypes are value types as the engine numbers them.
func APITypes(in []ValueType) []byte {
	out := make([]byte, len(in))
	for i, t := range in {
		out[i] = byte(t)
	}
	return out
}

// Offer is an import that belongs to a capability, or that all guests may have. What it does is not in it.
type Offer struct {
	HostFunc

	// Capability is the one that it needs, empty when the guest can do without.
	Capability string
}

// Offers are the imports of capabilities, and host_error.
func Offers() []Offer {
	const i32, i64 = wasm.I32, wasm.I64
	types := func(all ...ValueType) []ValueType { return all }
	offer := func(module, name, capability string, params, results []ValueType) Offer {
		return Offer{HostFunc{Module: module, Name: name, Params: params, Results: results, Bulk: name == "messages_read"}, capability}
	}
	return []Offer{
		offer(ModuleHost, "host_error", "", nil, types(i64)),
		offer(ModuleHost, "kv_get", "kv", types(i64), types(i64)),
		offer(ModuleHost, "kv_set", "kv", types(i64, i64), types(i32)),
		offer(ModuleHost, "kv_delete", "kv", types(i64), types(i32)),
		offer(ModuleHost, "kv_list", "kv", types(i64, i64, i32), types(i64)),
		offer(ModuleHost, "http_fetch", "http", types(i64, i64), types(i64)),
		offer(ModuleHost, "model_ask", "model", types(i64), types(i64)),
		offer(ModuleHost, "model_info", "", types(i64), types(i64)),
		offer(ModuleHost, "model_chat", "", types(i64, i64), types(i64)),
		offer(ModuleHost, "messages_get", "", types(i32, i32), types(i64)),
		offer(ModuleHost, "messages_read", "", types(i32, i32, i32, i32), types(i64)),
		offer(ModuleEnv, "http_request", "http", types(i64, i64), types(i64)),
		offer(ModuleEnv, "http_status_code", "", nil, types(i32)),
		offer(ModuleEnv, "http_headers", "", nil, types(i64)),
		offer(ModuleEnv, "get_log_level", "", nil, types(i32)),
	}
}

// Function is the import of a name that a capability offers.
func Function(name string, run func(g Guest, stack []uint64)) HostFunc {
	for _, o := range Offers() {
		if o.Name == name {
			o.Run = run
			return o.HostFunc
		}
	}
	panic(fmt.Sprintf("host: %s is none of the imports", name))
}
