package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/mortise-dev/mortise/abi"
)

// ownSignature begins the signatures of this package.
const ownSignature = "openai.reasoning:"

// reasoningItem is what a signature holds of a reasoning item. The text of the block is the
// summary. Among the blocks of a message the place of an item is that of its block; Calls is
// how many calls the model wrote before it.
type reasoningItem struct {
	ID        string `json:"id,omitempty"`
	Encrypted string `json:"encrypted_content"`
	Calls     int    `json:"calls,omitempty"`
}

func (r reasoningItem) signature() (string, error) {
	data, err := json.Marshal(r)
	return ownSignature + base64.StdEncoding.EncodeToString(data), err
}

// readSignature returns false for a signature that another adapter made, or for none.
func readSignature(signature string) (r reasoningItem, own bool) {
	encoded, own := strings.CutPrefix(signature, ownSignature)
	if !own {
		return r, false
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return reasoningItem{}, false
	}
	return r, r.Encrypted != ""
}

// param is the item for a request.
func (r reasoningItem) param(summary string) inputItem {
	out := &sdk.ResponseReasoningItemParam{
		ID: r.ID, EncryptedContent: param.NewOpt(r.Encrypted), Summary: []sdk.ResponseReasoningItemSummaryParam{},
	}
	if summary != "" {
		out.Summary = append(out.Summary, sdk.ResponseReasoningItemSummaryParam{Text: summary})
	}
	return inputItem{OfReasoning: out}
}

// ordered writes the items of an answer in the order in which the model wrote them.
// Reasoning that nothing follows is left out: the API refuses it.
func ordered(msg *abi.Message, text func(string) inputItem, call func(*abi.ToolCall) (inputItem, error)) ([]inputItem, error) {
	var out []inputItem
	calls := 0
	callsUpTo := func(n int) error {
		for ; calls < min(n, len(msg.ToolCalls)); calls++ {
			item, err := call(&msg.ToolCalls[calls])
			if err != nil {
				return err
			}
			out = append(out, item)
		}
		return nil
	}
	for i := range msg.Content {
		b := &msg.Content[i]
		if b.Type == abi.BlockText && b.Text != "" {
			out = append(out, text(b.Text))
			continue
		}
		if item, own := readSignature(b.Signature); b.Type == abi.BlockThinking && own {
			if err := callsUpTo(item.Calls); err != nil {
				return nil, err
			}
			out = append(out, item.param(b.Text))
		}
	}
	if err := callsUpTo(len(msg.ToolCalls)); err != nil {
		return nil, err
	}
	for n := len(out); n > 0 && out[n-1].OfReasoning != nil; n-- {
		out = out[:n-1]
	}
	return out, nil
}
