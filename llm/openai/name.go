package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on names of tools, and on ids of calls in both APIs.
const (
	maxName = 64
	maxID   = 40
)

// fitName makes a name that the API takes, the same one each time.
func fitName(name string) string {
	return fit(name, maxName)
}

// fitID does the same for the id of a call.
func fitID(id string) string { return fit(id, maxID) }

func fit(s string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if s != "" && clean == s && len(s) <= limit {
		return s
	}
	mark := "_" + hash(s)[:8]
	return clean[:min(len(clean), limit-len(mark))] + mark
}

// hash is a text of 64 digits that does not show s.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// cacheKey routes the requests of a thread to the machine that has its prefix cached.
func cacheKey(thread string) string { return hash("mortise/" + thread)[:32] }

// ownNames finds the tools behind names that were made to fit.
func ownNames(tools []abi.Tool) map[string]string {
	names := make(map[string]string)
	for i := range tools {
		if own := tools[i].Name; fitName(own) != own {
			names[fitName(own)] = own
		}
	}
	return names
}
