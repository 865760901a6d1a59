package daemon

import "github.com/mortise-dev/mortise/hook"

// Journal returns what adds records to a folder, in files of a size.
func Journal(dir string, size int64) func(*hook.Record) {
	j := &journal{dir: dir, max: size}
	return func(r *hook.Record) { j.add(r, false) }
}

// States keeps lanes in a folder, with the name of a lane's file and the size from which on it is replaced.
func States(dir string) (s hook.States, file func(lane string) string, size int64) {
	kept := &states{dir: dir}
	return kept, kept.file, maxStates
}
