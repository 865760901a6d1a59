package openai

import (
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

type (
	chatMessage = sdk.ChatCompletionMessageParamUnion
	chatPart    = sdk.ChatCompletionContentPartUnionParam
)

// chatParams makes the body of a request.
func (m *Model) chatParams(r *llm.Request, stream bool) (*sdk.ChatCompletionNewParams, error) {
	p := &sdk.ChatCompletionNewParams{Model: r.Model}
	var err error
	if p.Messages, err = m.chatMessages(r.Messages); err != nil {
		return nil, err
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		schema, err := parameters(t)
		if err != nil {
			return nil, err
		}
		f := shared.FunctionDefinitionParam{Name: fitName(t.Name), Parameters: schema}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	if stream {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if r.ThreadID != "" && !m.cfg.Plain {
		p.PromptCacheKey = param.NewOpt(cacheKey(r.ThreadID))
	}
	m.chatLimits(r, p)
	return p, nil
}

func (m *Model) chatLimits(r *llm.Request, p *sdk.ChatCompletionNewParams) {
	has := traitOf(r.Model)
	if n := m.maxTokens(r); n > 0 && m.cfg.Plain {
		p.MaxTokens = param.NewOpt(n)
	} else if n > 0 {
		p.MaxCompletionTokens = param.NewOpt(n)
	}
	if v := r.Override.Temperature; v != nil && has.sampling {
		p.Temperature = param.NewOpt(*v)
	}
	if v := r.Override.TopP; v != nil && has.sampling {
		p.TopP = param.NewOpt(*v)
	}
	if v := r.Override.ReasoningEffort; v != nil && has.reasoning {
		p.ReasoningEffort = shared.ReasoningEffort(*v)
	}
}

// chatMessages writes a conversation. Results of tools are texts only in this API, so
// images and documents of a step's results follow them in a message of the user.
func (m *Model) chatMessages(messages []abi.Message) ([]chatMessage, error) {
	system, n, err := head(messages)
	if err != nil {
		return nil, err
	}
	messages = resultsFirst(messages)
	var out []chatMessage
	if system != "" {
		out = append(out, sdk.SystemMessage(system))
	}
	var media []chatPart
	for i := n; i < len(messages); i++ {
		msg := &messages[i]
		if msg.Role != abi.RoleTool && len(media) > 0 {
			out, media = append(out, sdk.UserMessage(media)), nil
		}
		if msg.Role == abi.RoleTool {
			result, more, err := m.chatResult(i, msg)
			if err != nil {
				return nil, err
			}
			out, media = append(out, result), append(media, more...)
			continue
		}
		if out, err = m.chatAppend(out, i, msg); err != nil {
			return nil, err
		}
	}
	if len(media) > 0 {
		out = append(out, sdk.UserMessage(media))
	}
	return out, nil
}

// resultsFirst moves what stands between the calls of a message and their results behind the results, where this API wants it.
func resultsFirst(messages []abi.Message) []abi.Message {
	out := messages
	for i := 0; i < len(messages); i++ {
		if len(messages[i].ToolCalls) == 0 {
			continue
		}
		end := i + 1
		for end < len(messages) && messages[end].Role != abi.RoleAssistant {
			end++
		}
		byRole := func(a, b abi.Message) int { return rank(a.Role) - rank(b.Role) }
		if turn := messages[i+1 : end]; !slices.IsSortedFunc(turn, byRole) {
			if &out[0] == &messages[0] {
				out = slices.Clone(messages)
			}
			slices.SortStableFunc(out[i+1:end], byRole)
		}
		i = end - 1
	}
	return out
}

// rank is the place of a message behind calls.
func rank(role abi.Role) int {
	if role == abi.RoleTool {
		return 0
	}
	return 1
}

// chatAppend adds a message that is no result.
func (m *Model) chatAppend(out []chatMessage, place int, msg *abi.Message) ([]chatMessage, error) {
	switch msg.Role {
	case abi.RoleAssistant:
		answer, err := m.chatAnswer(place, msg)
		if err != nil || answer == nil {
			return out, err
		}
		return append(out, chatMessage{OfAssistant: answer}), nil
	case abi.RoleSystem:
		text, err := textOf(place, msg)
		switch {
		case err != nil || text == "":
			return out, err
		case m.cfg.Plain:
			return append(out, sdk.UserMessage(text)), nil
		default:
			return append(out, sdk.SystemMessage(text)), nil
		}
	default:
		parts, err := chatParts(place, msg)
		switch {
		case err != nil || len(parts) == 0:
			return out, err
		case len(parts) == 1 && parts[0].OfText != nil:
			return append(out, sdk.UserMessage(parts[0].OfText.Text)), nil
		default:
			return append(out, sdk.UserMessage(parts)), nil
		}
	}
}

// chatAnswer is nil when nothing of the message can be sent.
func (m *Model) chatAnswer(place int, msg *abi.Message) (*sdk.ChatCompletionAssistantMessageParam, error) {
	text, err := textOf(place, msg)
	if err != nil {
		return nil, err
	}
	out := &sdk.ChatCompletionAssistantMessageParam{}
	if text != "" {
		out.Content.OfString = param.NewOpt(text)
	}
	extras := extrasOf(msg)
	for i := range msg.ToolCalls {
		c := &msg.ToolCalls[i]
		arguments, err := argumentsText(place, c)
		if err != nil {
			return nil, err
		}
		call := &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID: m.chatID(c.ID), Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: fitName(c.Name), Arguments: arguments},
		}
		if content, ok := extras[c.ID]; ok {
			call.SetExtraFields(map[string]any{"extra_content": content})
		}
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	if text == "" && len(out.ToolCalls) == 0 {
		return nil, nil
	}
	return out, nil
}

// chatResult is a result, and the media in it.
func (m *Model) chatResult(place int, msg *abi.Message) (chatMessage, []chatPart, error) {
	parts, err := chatParts(place, msg)
	if err != nil {
		return chatMessage{}, nil, err
	}
	var text string
	var media []chatPart
	for _, p := range parts {
		if p.OfText != nil {
			text += p.OfText.Text
		} else {
			media = append(media, p)
		}
	}
	if len(media) > 0 {
		if text != "" {
			text += "\n"
		}
		text += "[Media of this result are in the next message of the user.]"
		media = append([]chatPart{sdk.TextContentPart("Media of the result of call " + m.chatID(msg.ToolCallID) + ":")}, media...)
	}
	return sdk.ToolMessage(text, m.chatID(msg.ToolCallID)), media, nil
}

// chatParts are the parts of a message that the API takes.
func chatParts(place int, msg *abi.Message) ([]chatPart, error) {
	var out []chatPart
	for i := range msg.Content {
		b := &msg.Content[i]
		where, found := address(b)
		switch {
		case b.Type == abi.BlockText && b.Text != "":
			out = append(out, sdk.TextContentPart(b.Text))
		case b.Type == abi.BlockText, b.Type == abi.BlockThinking:
		case b.Type != abi.BlockImage && b.Type != abi.BlockDocument:
			return nil, refused(place, msg, i, "Chat Completions takes texts, images and documents")
		case !found:
			return nil, refused(place, msg, i, "it has neither a URL nor data with a media type")
		case b.Type == abi.BlockImage:
			out = append(out, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: where}))
		case b.Data == "":
			return nil, refused(place, msg, i, "Chat Completions takes the data of a document, not its URL")
		default:
			out = append(out, sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
				FileData: param.NewOpt(where), Filename: param.NewOpt(fileName(b)),
			}))
		}
	}
	return out, nil
}

// chatID is the id of a call. Models of some servers learned to write ids of a form of their
// own, so only what OpenAI refuses for its length is replaced.
func (m *Model) chatID(id string) string {
	if m.cfg.Plain || len(id) <= maxID {
		return id
	}
	return fitID(id)
}
