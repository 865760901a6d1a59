package model

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/sdk/go/internal/jsontext"
)

// appendHead writes a question, without its prompt, as the host reads it.
func appendHead(out []byte, q Question) []byte {
	out = jsontext.Append(append(out, `{"role":`...), q.Role)
	out = jsontext.Append(append(out, `,"system":`...), q.System)
	out = strconv.AppendInt(append(out, `,"answer_tokens":`...), q.AnswerTokens, 10)
	return append(out, '}')
}

// readInfo reads what the host says about a role: an object of numbers.
func readInfo(text string) RoleInfo {
	number := func(key string) int64 {
		_, rest, found := strings.Cut(text, `"`+key+`":`)
		if !found {
			return 0
		}
		if end := strings.IndexAny(rest, ",}"); end >= 0 {
			rest = rest[:end]
		}
		n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return RoleInfo{
		WindowTokens: number("window_tokens"), AnswerTokens: number("answer_tokens"),
		LeftTokens: number("left_tokens"), LeftQuestions: number("left_questions"),
	}
}
