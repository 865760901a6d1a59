package mask

import (
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Results returns the messages with each tool output of more than keep bytes masked: its
// lines that tell most are left. The messages that were given are not changed.
func Results(list []mortise.Message, keep int) []mortise.Message {
	out := make([]mortise.Message, len(list))
	copy(out, list)
	for i := range out {
		m := &out[i]
		if talk.Hidden(m) || !talk.Output(m) {
			continue
		}
		text := strings.TrimSpace(m.Text())
		if len(text) <= keep {
			continue
		}
		start := ""
		if m.Role != mortise.RoleTool {
			start = "<output> " // so that it is still told from what a user says
		}
		m.Content = []mortise.ContentBlock{mortise.Text(start + "(masked: " + talk.Number(len(text)) + " bytes)\n" +
			strings.ReplaceAll(talk.Notable(text, keep), " / ", "\n"))}
	}
	return out
}
