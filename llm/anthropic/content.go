package anthropic

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/mortise-dev/mortise/abi"
)

const (
	// redactedPrefix starts the signature of a redacted block, followed by its data.
	redactedPrefix = "anthropic.redacted:"
	// afterPrefix starts the signature of a block that followed tool calls, followed by their number and a colon.
	afterPrefix = "anthropic.after:"
)

// content converts message i into blocks of a turn.
func (q *request) content(i int, m *abi.Message, thinking bool) (sdk.MessageParamRole, []sdk.ContentBlockParamUnion, error) {
	switch m.Role {
	case abi.RoleAssistant:
		blocks, err := q.answer(i, m, thinking)
		return sdk.MessageParamRoleAssistant, blocks, err
	case abi.RoleTool:
		result, err := q.toolResult(i, m)
		return sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{{OfToolResult: result}}, err
	default:
		var out []sdk.ContentBlockParamUnion
		for j := range m.Content {
			b, err := media(&m.Content[j])
			if err != nil {
				return "", nil, fmt.Errorf("message %d %.80q, block %d: %w", i, m.ID, j, err)
			}
			if b != nil {
				out = append(out, sdk.ContentBlockParamUnion{OfText: b.OfText, OfImage: b.OfImage, OfDocument: b.OfDocument})
			}
		}
		return sdk.MessageParamRoleUser, out, nil
	}
}

// answer converts an assistant message into the blocks of the original response, in their order.
func (q *request) answer(i int, m *abi.Message, thinking bool) ([]sdk.ContentBlockParamUnion, error) {
	var out []sdk.ContentBlockParamUnion
	calls := m.ToolCalls
	place := func(n int) {
		for ; len(calls) > 0 && len(m.ToolCalls)-len(calls) < n; calls = calls[1:] {
			out = append(out, q.toolUse(&calls[0]))
		}
	}
	for j := range m.Content {
		b := &m.Content[j]
		switch b.Type {
		case abi.BlockText:
			if strings.TrimSpace(b.Text) != "" {
				out = append(out, sdk.NewTextBlock(b.Text))
			}
		case abi.BlockThinking:
			signature, after, ok := ownSignature(b.Signature)
			if !ok || !thinking {
				continue
			}
			q.thoughts = true
			place(after)
			if data, redacted := strings.CutPrefix(signature, redactedPrefix); redacted {
				out = append(out, sdk.NewRedactedThinkingBlock(data))
			} else {
				out = append(out, sdk.NewThinkingBlock(signature, b.Text))
			}
		default:
			return nil, fmt.Errorf("message %d %.80q, block %d: the API takes no %s from the assistant", i, m.ID, j, b.Type)
		}
	}
	place(len(m.ToolCalls))
	// The API rejects messages that end with thinking, such as a response cut at the output limit.
	for n := len(out); n > 0 && (out[n-1].OfThinking != nil || out[n-1].OfRedactedThinking != nil); n-- {
		out = out[:n-1]
	}
	return out, nil
}

// ownSignature splits a signature into the API's and the number of preceding calls. Signatures of other providers start
// with a name and a colon.
func ownSignature(s string) (signature string, after int, ok bool) {
	if rest, found := strings.CutPrefix(s, afterPrefix); found {
		count, signature, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(count)
		return signature, n, err == nil && signature != ""
	}
	return s, 0, s != "" && (strings.HasPrefix(s, redactedPrefix) || !strings.Contains(s, ":"))
}

// signed returns the signature of a block that follows some calls.
func signed(signature string, after int) string {
	if after == 0 || signature == "" {
		return signature
	}
	return afterPrefix + strconv.Itoa(after) + ":" + signature
}

// toolUse converts a call. The API requires an object as input, and ids that are unique in the request.
func (q *request) toolUse(c *abi.ToolCall) sdk.ContentBlockParamUnion {
	input, ok := c.Arguments.(map[string]any)
	if !ok {
		input = map[string]any{}
		if c.Arguments != nil {
			input["arguments"] = c.Arguments
		}
	}
	id := fit(c.ID)
	for n := 2; q.used[id]; n++ {
		id = fit(c.ID + "#" + strconv.Itoa(n))
	}
	q.used[id], q.ids[c.ID] = true, id
	return sdk.NewToolUseBlock(id, input, fit(c.Name))
}

// toolResult converts a result, of the latest call with its id. The API accepts only text in failed results.
func (q *request) toolResult(i int, m *abi.Message) (*sdk.ToolResultBlockParam, error) {
	out := &sdk.ToolResultBlockParam{ToolUseID: cmp.Or(q.ids[m.ToolCallID], fit(m.ToolCallID))}
	failed, _ := m.Metadata[abi.MetadataIsError].(bool)
	for j := range m.Content {
		b, err := media(&m.Content[j])
		if err != nil {
			return nil, fmt.Errorf("message %d %.80q, block %d: %w", i, m.ID, j, err)
		}
		if b != nil {
			out.Content = append(out.Content, *b)
			failed = failed && b.OfText != nil
		}
	}
	if failed {
		out.IsError = param.NewOpt(true)
	}
	return out, nil
}

// texts returns the text blocks of a system message.
func texts(i int, m *abi.Message) ([]sdk.TextBlockParam, error) {
	var out []sdk.TextBlockParam
	for j := range m.Content {
		switch b := &m.Content[j]; {
		case b.Type != abi.BlockText:
			return nil, fmt.Errorf("message %d %.80q, block %d: a system prompt is text, not %s", i, m.ID, j, b.Type)
		case strings.TrimSpace(b.Text) != "":
			out = append(out, sdk.TextBlockParam{Text: b.Text})
		}
	}
	return out, nil
}

// media converts a block of a user or tool message. It returns nil for blank text.
func media(b *abi.ContentBlock) (*sdk.ToolResultBlockParamContentUnion, error) {
	switch b.Type {
	case abi.BlockText:
		if strings.TrimSpace(b.Text) == "" {
			return nil, nil
		}
		return &sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: b.Text}}, nil
	case abi.BlockImage:
		return image(b)
	case abi.BlockDocument:
		return document(b)
	default:
		return nil, fmt.Errorf("the API takes no %s; send text, an image or a document", b.Type)
	}
}

func image(b *abi.ContentBlock) (*sdk.ToolResultBlockParamContentUnion, error) {
	var source sdk.ImageBlockParamSourceUnion
	switch {
	case b.Data != "":
		source.OfBase64 = &sdk.Base64ImageSourceParam{Data: b.Data, MediaType: sdk.Base64ImageSourceMediaType(b.MediaType)}
	case b.URL != "":
		source.OfURL = &sdk.URLImageSourceParam{URL: b.URL}
	default:
		return nil, fmt.Errorf("the %s has neither data nor URL", b.Type)
	}
	return &sdk.ToolResultBlockParamContentUnion{OfImage: &sdk.ImageBlockParam{Source: source}}, nil
}

// document converts a PDF or a text.
func document(b *abi.ContentBlock) (*sdk.ToolResultBlockParamContentUnion, error) {
	out := &sdk.DocumentBlockParam{}
	if b.Title != "" {
		out.Title = param.NewOpt(b.Title)
	}
	switch {
	case b.Data != "" && (b.MediaType == "" || b.MediaType == "application/pdf"):
		out.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: b.Data}
	case b.Data != "" && strings.HasPrefix(b.MediaType, "text/"):
		text, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return nil, fmt.Errorf("the data of the document are not base64: %w", err)
		}
		out.Source.OfText = &sdk.PlainTextSourceParam{Data: string(text)}
	case b.URL != "":
		out.Source.OfURL = &sdk.URLPDFSourceParam{URL: b.URL}
	default:
		return nil, fmt.Errorf("the API takes no document of type %q; send a PDF, a text or the URL of a PDF", b.MediaType)
	}
	return &sdk.ToolResultBlockParamContentUnion{OfDocument: out}, nil
}

// maxName is the length of names and ids that every model accepts.
const maxName = 64

// fit returns a tool name or call id that the API accepts: unchanged if it matches the pattern, otherwise cleaned and with
// a hash of the original.
func fit(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, name)
	if clean == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tag := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), maxName-len(tag))] + tag
}
