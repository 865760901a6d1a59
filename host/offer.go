package host

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// envImports are the functions of "extism:host/env" with their signatures.
func envImports() map[string]string {
	return map[string]string{
		"alloc":            "(i64) -> i64",
		"free":             "(i64) -> ()",
		"length":           "(i64) -> i64",
		"length_unsafe":    "(i64) -> i64",
		"load_u8":          "(i64) -> i32",
		"load_u64":         "(i64) -> i64",
		"store_u8":         "(i64, i32) -> ()",
		"store_u64":        "(i64, i64) -> ()",
		"input_set":        "(i64, i64) -> ()",
		"input_length":     "() -> i64",
		"input_offset":     "() -> i64",
		"input_load_u8":    "(i64) -> i32",
		"input_load_u64":   "(i64) -> i64",
		"output_set":       "(i64, i64) -> ()",
		"output_length":    "() -> i64",
		"output_offset":    "() -> i64",
		"reset":            "() -> ()",
		"error_set":        "(i64) -> ()",
		"error_get":        "() -> i64",
		"memory_bytes":     "() -> i64",
		"config_get":       "(i64) -> i64",
		"var_get":          "(i64) -> i64",
		"var_set":          "(i64, i64) -> ()",
		"http_request":     "(i64, i64) -> i64",
		"http_status_code": "() -> i32",
		"http_headers":     "() -> i64",
		"get_log_level":    "() -> i32",
		"log_trace":        "(i64) -> ()",
		"log_debug":        "(i64) -> ()",
		"log_info":         "(i64) -> ()",
		"log_warn":         "(i64) -> ()",
		"log_error":        "(i64) -> ()",
	}
}

// without are the answers where a capability is not granted. A module that imports another function of it is refused.
func without() map[string]func(g engine.Guest, stack []uint64) {
	answers := func(n uint64) func(engine.Guest, []uint64) {
		return func(_ engine.Guest, stack []uint64) { stack[0] = n }
	}
	none := ^uint64(0) // -1
	const off = 1<<31 - 1
	return map[string]func(engine.Guest, []uint64){
		"host_error":       hostError,
		"model_info":       denied("model_info", "no role of a model is granted"),
		"model_chat":       denied("model_chat", "no role of a model is granted"),
		"messages_get":     answers(0),
		"messages_read":    answers(none),
		"http_request":     trapped("http_request"),
		"http_status_code": answers(0),
		"http_headers":     answers(0),
		"get_log_level":    answers(off),
	}
}

// denied answers that nothing is granted, for a guest that can do without.
func denied(name, text string) func(engine.Guest, []uint64) {
	return func(g engine.Guest, stack []uint64) {
		_, s := g.Enter(name)
		stack[0] = s.Refuse(engine.CodeDenied, name+": "+text)
	}
}

// trapped ends the guest. The module was refused before, so nothing calls it.
func trapped(name string) func(engine.Guest, []uint64) {
	return func(g engine.Guest, _ []uint64) {
		g.Fail(&engine.Fault{Kind: TrapDenied, Detail: name + ": not granted"})
	}
}

// hostError is the import host_error.
func hostError(g engine.Guest, stack []uint64) {
	_, s := g.Enter("host_error")
	stack[0] = 0
	if s.Text != "" {
		stack[0] = g.Store("host_error", []byte(s.Text))
	}
}

// ungranted are the functions that answer in the place of capabilities which are not there.
func ungranted(there []engine.HostFunc) []engine.HostFunc {
	var out []engine.HostFunc
	answers := without()
	for _, o := range engine.Offers() {
		has := slices.ContainsFunc(there, func(f engine.HostFunc) bool { return f.Module == o.Module && f.Name == o.Name })
		if answer := answers[o.Name]; !has && answer != nil {
			o.Run, o.Bulk = answer, false
			out = append(out, o.HostFunc)
		}
	}
	return out
}

// hostImports are the functions of "mortise:host/1".
func hostImports() map[string]string {
	out := map[string]string{engine.ImportInputRead: "(i32) -> ()", engine.ImportOutputWrite: "(i32, i32) -> ()"}
	for _, o := range engine.Offers() {
		if o.Module == engine.ModuleHost {
			out[o.Name] = o.Type().String()
		}
	}
	return out
}

// needs returns the capability that an import needs, empty when it needs none.
func needs(module, name string) string {
	for _, o := range engine.Offers() {
		if o.Module == module && o.Name == name {
			return o.Capability
		}
	}
	return ""
}

// wasiImports are the functions of WASI preview 1. The engine checks their
// signatures.
func wasiImports() map[string]string {
	names := strings.Fields(`args_get args_sizes_get environ_get environ_sizes_get clock_res_get clock_time_get
		fd_advise fd_allocate fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_fdstat_set_rights
		fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_get fd_prestat_dir_name
		fd_pwrite fd_read fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write path_create_directory
		path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory
		path_rename path_symlink path_unlink_file poll_oneoff proc_exit proc_raise random_get sched_yield
		sock_accept sock_recv sock_send sock_shutdown`)
	out := make(map[string]string, len(names))
	for _, n := range names {
		out[n] = ""
	}
	return out
}

// offer returns what an import module offers, nil for an unknown one.
func offer(module string) map[string]string {
	switch module {
	case engine.ModuleEnv:
		return envImports()
	case engine.ModuleHost:
		return hostImports()
	case engine.ModuleWASI:
		return wasiImports()
	}
	return nil
}

// Imports reports whether the binary, or a module that it is linked with, may import a
// function.
func (g *Generation) Imports(module, name string) bool {
	return len(g.info.Links) > 0 || slices.ContainsFunc(g.parsed.Imports, func(im wasm.Import) bool {
		return im.Module == module && im.Name == name
	})
}

// Imports reports whether the current generation may import a function.
func (m *Module) Imports(module, name string) bool { return m.Current().Imports(module, name) }
