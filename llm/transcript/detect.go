package transcript

import (
	"fmt"
	"strings"
)

// maxUndecided is how many records may come before one that tells the format.
const maxUndecided = 100

// detect returns the format that a record belongs to, nil when the record does
// not tell.
func (r *reader) detect(data []byte) (format, error) {
	o, ok := parseObject(data)
	if !ok {
		return nil, fmt.Errorf("not an object: %w", ErrUnknownFormat)
	}
	kind := o.text("type")
	switch {
	case isGeminiSession(o):
		return &geminiLog{r: r}, nil
	case isConversation(o):
		return newDataset(r), nil
	case isHands(o):
		return newHandsLog(r), nil
	case isGooseHead(o):
		return newGooseLog(r), nil
	case isPi(kind, o):
		return &piSession{r: r}, nil
	case isClaude(kind, o):
		return newClaudeLog(r), nil
	case isCodex(kind, o):
		return newCodexLog(r), nil
	case o.is("role", '"'), isItem(kind):
		return &messageList{r: r}, nil
	case kind != "" && r.undecided < maxUndecided:
		r.undecided++
		r.skip(kind)
		return nil, nil
	}
	return nil, ErrUnknownFormat
}

func isPi(kind string, o object) bool {
	switch kind {
	case "session", "model_change", "thinking_level_change":
		return true
	case "message":
		return o.is("message", '{')
	}
	return false
}

func isClaude(kind string, o object) bool {
	switch kind {
	case "user", "assistant":
		return o.is("message", '{')
	case "summary", "file-history-snapshot", "queue-operation", "progress":
		return true
	case "":
		return false
	}
	for _, key := range []string{"sessionId", "session_id", "parentUuid", "leafUuid"} {
		if _, ok := o[key]; ok {
			return true
		}
	}
	return false
}

// isConversation reports whether an object holds a whole conversation.
func isConversation(o object) bool {
	return o.is("messages", '[') || o.is("traj", '[') || o.is("meeting_transcripts", '[') ||
		o.is("question", '[') && strings.TrimSpace(o.text("id")) != "" || isResponses(o) ||
		o.is("conversation", '[') || o.is("history", '[')
}

// isResponses reports a request or an answer of the Responses API, or a list of
// its items.
func isResponses(o object) bool {
	kind := o.text("object")
	return kind == "response" && o.is("output", '[') || o.is("input", '[') && (o.is("model", '"') || o.is("instructions", '"')) ||
		kind == "list" && o.is("data", '[')
}
