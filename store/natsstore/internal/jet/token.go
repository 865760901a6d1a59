package jet

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// maxToken is from how many bytes on an id is hashed: servers take 4 KiB for a subject and what stands around it.
const maxToken = 128

// Token is an id as a word of a subject: it may hold anything, and have any length. A long one cannot be read back.
func Token(id string) string {
	if len(id) > maxToken {
		sum := sha256.Sum256([]byte(id))
		return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return "=" + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// Untoken is the id of a token, if it can be read back.
func Untoken(token string) (id string, ok bool) {
	text, ok := strings.CutPrefix(token, "=")
	data, err := base64.RawURLEncoding.DecodeString(text)
	return string(data), ok && err == nil
}
