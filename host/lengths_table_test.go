package host_test

import (
	"fmt"
	"maps"
)

// long is the length that imports are called with, in bytes: 64 MB, or with -short 20, which is still more than any default
// allows. TestMain sets it.
var long = 64 << 20

// arg makes an argument of an import: a number, or what fill and text make.
type arg any

// Arguments that are blocks of the kernel, made before the call.
type (
	// fill is a block with as many bytes.
	fill int
	// text is a block with a text.
	text string
)

// want is what must become of a call with a length of 64 MB.
type want any

// What a want may be, besides a number, which is the code that the guest gets.
type (
	// charged is a call that pays for at least one unit of fuel for each 64 bytes or entry.
	charged struct{}
	// trapped is a call that ends with a trap, whose detail has the text in it.
	trapped string
	// stored is a number that is kept, or ignored: nothing is as long as it says.
	stored struct{}
)

// lengthy is a call of an import with one length of 64 MB.
type lengthy struct {
	// param is the index of the length, or of the block that is as long.
	param int
	args  []arg
	want  want
}

// none is for an import without lengths.
func none() []lengthy { return nil }

// path is a call with a path that is too long.
func path(param int, args ...arg) lengthy { return lengthy{param, args, 37} }

// lengths names for each import that a host offers its parameters that are lengths, with a
// call for each. An import that is missing here fails the test.
func lengths() map[string][]lengthy {
	out := map[string][]lengthy{}
	for _, group := range []map[string][]lengthy{wasiPaths(), wasiData(), wasiOthers(), envLengths(), hostLengths()} {
		maps.Copy(out, group)
	}
	return out
}

func wasiPaths() map[string][]lengthy {
	const dir = 9 // is not open: the path must not be looked at before that is seen
	return map[string][]lengthy{
		"path_create_directory":   {path(2, dir, 0, long)},
		"path_filestat_get":       {path(3, dir, 0, 0, long, 0)},
		"path_filestat_set_times": {path(3, dir, 0, 0, long, 0, 0, 0)},

		"path_link":             {path(3, dir, 0, 0, long, dir, 0, 1), path(6, dir, 0, 0, 1, dir, 0, long)},
		"path_open":             {path(3, dir, 0, 0, long, 0, 0, 0, 0, 0)},
		"path_readlink":         {path(2, dir, 0, long, 0, 1, 0), {4, []arg{dir, 0, 1, 0, long, 0}, charged{}}},
		"path_remove_directory": {path(2, dir, 0, long)},
		"path_rename":           {path(2, dir, 0, long, dir, 0, 1), path(5, dir, 0, 1, dir, 0, long)},
		"path_symlink":          {path(1, 0, long, dir, 0, 1), path(4, 0, 1, dir, 0, long)},
		"path_unlink_file":      {path(2, dir, 0, long)},
		"fd_prestat_dir_name":   {path(2, dir, 0, long)},
	}
}

func wasiData() map[string][]lengthy {
	const stdin, stdout, dir, file = 0, 1, 3, 4
	vectors := func(fd int, more ...arg) []lengthy {
		return []lengthy{{2, append([]arg{fd, 0, long / 8}, more...), charged{}}}
	}
	return map[string][]lengthy{
		"fd_read":     vectors(stdin, 0),
		"fd_pread":    vectors(stdin, 0, 0),
		"fd_write":    vectors(stdout, 0),
		"fd_pwrite":   vectors(stdout, 0, 0),
		"sock_recv":   vectors(file, 0, 0, 0),
		"sock_send":   vectors(file, 0, 0),
		"poll_oneoff": {{2, []arg{0, 0, long / 48, 0}, trapped(fmt.Sprintf("poll_oneoff: %d entries, and 4096 are allowed", long/48))}},
		"random_get":  {{1, []arg{0, long}, charged{}}},
		"fd_readdir":  {{2, []arg{dir, 0, long, 0, 0}, charged{}}},
		// The folder has a quota; that is an I/O error, and the length is one on the disk.
		"fd_allocate":          {{2, []arg{file, 0, long}, 29}},
		"fd_filestat_set_size": {{1, []arg{file, long}, 29}},
		"fd_advise":            {{2, []arg{file, 0, long, 0}, stored{}}},
	}
}

// wasiOthers take and return numbers, or what the operator gave them.
func wasiOthers() map[string][]lengthy {
	out := map[string][]lengthy{}
	for _, name := range []string{
		"args_get", "args_sizes_get", "environ_get", "environ_sizes_get", "clock_res_get", "clock_time_get",
		"fd_close", "fd_datasync", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_fdstat_set_rights",
		"fd_filestat_get", "fd_filestat_set_times", "fd_prestat_get", "fd_renumber", "fd_seek", "fd_sync", "fd_tell",
		"proc_exit", "proc_raise", "sched_yield", "sock_accept", "sock_shutdown",
	} {
		out[name] = none()
	}
	return out
}

func envLengths() map[string][]lengthy {
	one := []lengthy{{0, []arg{fill(long)}, charged{}}}
	small := text(`{"url":"http://x.test/"}`)
	out := map[string][]lengthy{
		"alloc":        {{0, []arg{long}, stored{}}}, // reserved: pages that are not touched cost nothing
		"config_get":   one,
		"var_get":      one,
		"var_set":      {{0, []arg{fill(long), 0}, charged{}}, {1, []arg{text("k"), fill(long)}, charged{}}},
		"http_request": {{0, []arg{fill(long), 0}, charged{}}, {1, []arg{small, fill(long)}, charged{}}},
		"input_set":    {{1, []arg{0, long}, stored{}}},
		"output_set":   {{1, []arg{0, long}, stored{}}}, // TestHostile has what becomes of it
		"error_set":    {{0, []arg{fill(long)}, stored{}}},
	}
	for _, name := range []string{"log_trace", "log_debug", "log_info", "log_warn", "log_error"} {
		out[name] = one
	}
	for _, name := range []string{
		"free", "length", "length_unsafe", "load_u8", "load_u64", "store_u8", "store_u64", "input_length", "input_offset",
		"input_load_u8", "input_load_u64", "output_length", "output_offset", "reset", "error_get", "memory_bytes",
		"http_status_code", "http_headers", "get_log_level",
	} {
		out[name] = none()
	}
	return out
}

func hostLengths() map[string][]lengthy {
	one := []lengthy{{0, []arg{fill(long)}, charged{}}}
	request := text(`{"url":"http://x.test/"}`)
	role := text(`{"role":"r"}`)
	return map[string][]lengthy{
		"input_read":    {{0, []arg{0}, charged{}}}, // its length is that of the input
		"output_write":  {{1, []arg{0, long}, charged{}}},
		"messages_get":  {{1, []arg{0, long}, charged{}}},
		"messages_read": {{3, []arg{0, 1, 0, long}, charged{}}},
		"host_error":    none(), // the text is the host's
		"kv_get":        one,
		"kv_delete":     one,
		"kv_set":        {{0, []arg{fill(long), 0}, charged{}}, {1, []arg{text("k"), fill(long)}, charged{}}},
		"kv_list":       {{0, []arg{fill(long), 0, 1}, charged{}}, {1, []arg{0, fill(long), 1}, charged{}}},
		"http_fetch":    {{0, []arg{fill(long), 0}, charged{}}, {1, []arg{request, fill(long)}, charged{}}},
		"model_ask":     one,
		"model_info":    one,
		"model_chat":    {{0, []arg{fill(long), text("p")}, charged{}}, {1, []arg{role, fill(long)}, charged{}}},
	}
}
