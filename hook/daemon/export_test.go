package daemon

import "github.com/mortise-dev/mortise/hook"

// Journal returns what adds records to a folder, in files of a size.
func Journal(dir string, size int64) func(*hook.Record) {
	j := &journal{dir: dir, max: size}
	return func(r *hook.Record) { j.add(r, false) }
}
