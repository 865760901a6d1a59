package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// extraSignature begins the signatures that hold the extra_content of a call. Gemini's
// compatible endpoint puts its thought signatures there, and refuses a conversation that
// comes back without them.
const extraSignature = "openai.extra:"

// extra is the extra_content of the call with an id.
type extra struct {
	CallID  string          `json:"call_id"`
	Content json.RawMessage `json:"extra_content"`
}

func (e extra) signature() string {
	data, err := json.Marshal(e)
	if err != nil {
		return "" // The content was read as JSON.
	}
	return extraSignature + base64.StdEncoding.EncodeToString(data)
}

// extrasOf finds what came with the calls of a message, by their ids.
func extrasOf(msg *abi.Message) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage)
	for i := range msg.Content {
		encoded, own := strings.CutPrefix(msg.Content[i].Signature, extraSignature)
		if !own {
			continue
		}
		var e extra
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil && json.Unmarshal(data, &e) == nil {
			out[e.CallID] = e.Content
		}
	}
	return out
}
