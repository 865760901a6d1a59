package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// noJSON are the arguments of a call that has none.
const noJSON = "{}"

// refused is a block that the API does not take. Place is the index of the message.
func refused(place int, msg *abi.Message, block int, why string) error {
	b := &msg.Content[block]
	return &llm.Error{Kind: llm.KindInvalidRequest, Message: fmt.Sprintf(
		"message %d (id %.80q, %s), block %d: %s: %s", place, msg.ID, msg.Role, block, b.Type, why)}
}

// address is where the API finds a medium: its URL, or the data as one.
func address(b *abi.ContentBlock) (string, bool) {
	switch {
	case b.URL != "":
		return b.URL, true
	case b.Data == "":
		return "", false
	case strings.HasPrefix(b.Data, "data:"):
		return b.Data, true
	case b.MediaType == "":
		return "", false
	default:
		return "data:" + b.MediaType + ";base64," + b.Data, true
	}
}

// fileName is what the API wants to know of a document.
func fileName(b *abi.ContentBlock) string {
	if b.Title != "" {
		return b.Title
	}
	if _, kind, ok := strings.Cut(b.MediaType, "/"); ok && len(kind) <= 8 {
		return "document." + kind
	}
	return "document"
}

// textOf joins the texts of a message that may hold nothing else, as a system message.
func textOf(place int, msg *abi.Message) (string, error) {
	var parts []string
	for i := range msg.Content {
		switch b := &msg.Content[i]; b.Type {
		case abi.BlockText:
			parts = append(parts, b.Text)
		case abi.BlockThinking:
		default:
			return "", refused(place, msg, i, "the message may hold texts only")
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// head joins the system messages at the beginning, and returns how many they are.
func head(messages []abi.Message) (string, int, error) {
	var parts []string
	n := 0
	for ; n < len(messages) && messages[n].Role == abi.RoleSystem; n++ {
		text, err := textOf(n, &messages[n])
		if err != nil {
			return "", 0, err
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n"), n, nil
}

// argumentsText is the JSON of arguments. A text is what a model wrote that was no JSON:
// servers refuse such arguments, so they become an object that has it.
func argumentsText(place int, c *abi.ToolCall) (string, error) {
	v := c.Arguments
	switch text, isText := v.(string); {
	case v == nil:
		return noJSON, nil
	case isText && complete([]byte(text)):
		return text, nil
	case isText:
		v = map[string]any{"malformed_arguments": text}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", &llm.Error{Kind: llm.KindInvalidRequest, Message: fmt.Sprintf("message %d, call %.80q: the arguments are not JSON", place, c.ID), Err: err}
	}
	return strings.TrimSpace(out.String()), nil
}

// parameters is the schema of a tool as it is, but for what OpenAI demands: it is an object
// that has properties.
func parameters(t *abi.Tool) (map[string]any, error) {
	schema, ok := t.Parameters.(map[string]any)
	if !ok && t.Parameters != nil {
		data, err := json.Marshal(t.Parameters)
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil {
			return nil, &llm.Error{Kind: llm.KindInvalidRequest, Message: fmt.Sprintf("tool %.80q: the parameters are no JSON Schema object", t.Name), Err: err}
		}
	}
	out := map[string]any{"type": "object", "properties": map[string]any{}}
	maps.Copy(out, schema)
	return out, nil
}
