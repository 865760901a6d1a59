package eval

import "github.com/mortise-dev/mortise/abi"

// Split cuts a conversation at the ends of rounds into n parts of about equal
// size in bytes, or as many as it has rounds. A round is a message with the tool
// results that follow it.
func Split(messages []abi.Message, n int) [][]abi.Message {
	total := 0
	sizes := make([]int, len(messages))
	for i := range messages {
		sizes[i] = len(flat(&messages[i])) + 1
		total += sizes[i]
	}
	var out [][]abi.Message
	start, size := 0, 0
	for i := range messages {
		size += sizes[i]
		full := size*n >= total*(len(out)+1) && len(out) < n-1
		if i+1 == len(messages) || full && messages[i+1].Role != abi.RoleTool {
			out = append(out, messages[start:i+1])
			start = i + 1
		}
	}
	return out
}

// body is what may be summarized: leading system messages stay in the view. A
// conversation of nothing else is taken whole.
func body(messages []abi.Message) []abi.Message {
	for i := range messages {
		if messages[i].Role != abi.RoleSystem {
			return messages[i:]
		}
	}
	return messages
}
