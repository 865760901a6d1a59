package host

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Import modules that a host offers. The names are those of the contract with
// guests, which this package does not import.
const (
	moduleEnv  = "extism:host/env"
	moduleHost = "mortise:host/1"
	moduleWASI = "wasi_snapshot_preview1"

	importInputRead   = "input_read"
	importOutputWrite = "output_write"
	importMessagesGet = "messages_get"
	// importMessagesRead reads the items of a call.
	importMessagesRead = "messages_read"
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

// hostImports are the functions of "mortise:host/1".
func hostImports() map[string]string {
	out := map[string]string{
		importInputRead:    "(i32) -> ()",
		importOutputWrite:  "(i32, i32) -> ()",
		importMessagesGet:  "(i32, i32) -> i64",
		importMessagesRead: "(i32, i32, i32, i32) -> i64",
	}
	for _, f := range hostFunctions() {
		out[f.name] = f.signature()
	}
	return out
}

// needs returns the grant that an import needs, empty when it needs none.
func needs(module, name string) string {
	var all []hostFunc
	switch module {
	case moduleHost:
		all = hostFunctions()
	case moduleEnv:
		all = envFunctions()
	}
	for _, f := range all {
		if f.name == name {
			return f.grant
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
	case moduleEnv:
		return envImports()
	case moduleHost:
		return hostImports()
	case moduleWASI:
		return wasiImports()
	}
	return nil
}

// Imports tells whether the binary, or a module that it is linked with, may import a
// function.
func (g *Generation) Imports(module, name string) bool {
	return len(g.info.Links) > 0 || slices.ContainsFunc(g.parsed.Imports, func(im wasm.Import) bool {
		return im.Module == module && im.Name == name
	})
}

// Imports tells whether the current generation may import a function.
func (m *Module) Imports(module, name string) bool { return m.Current().Imports(module, name) }
