package agent

import "strings"

// maxAttribute bounds the name of a call in words for the model, in bytes.
const maxAttribute = 256

// clip bounds foreign text.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}
