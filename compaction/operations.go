package compaction

import "github.com/mortise-dev/mortise/abi"

// FileOperations returns the files that the tool calls of messages read and
// modified, each list sorted; a file that was modified is not among those read.
// They are what a request for a summary says.
func FileOperations(messages []abi.Message) (read, modified []string) {
	r, m := make(fileSet), make(fileSet)
	fileOperations(messages, r, m)
	modified = m.sorted()
	for _, f := range modified {
		delete(r, f)
	}
	return r.sorted(), modified
}
