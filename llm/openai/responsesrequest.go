package openai

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

type (
	inputItem = sdk.ResponseInputItemUnionParam
	inputPart = sdk.ResponseInputContentUnionParam
)

// minOutput is the least output limit that the API takes.
const minOutput = 16

// responsesParams makes the body of a request.
func (m *Model) responsesParams(r *llm.Request) (*sdk.ResponseNewParams, error) {
	has := traitOf(r.Model)
	p := &sdk.ResponseNewParams{Model: r.Model, Store: param.NewOpt(false)}
	if has.reasoning {
		p.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
		p.Reasoning.Summary = shared.ReasoningSummary(m.cfg.Summary)
	}
	system, items, err := inputItems(r.Messages, has)
	if err != nil {
		return nil, err
	}
	if system != "" {
		p.Instructions = param.NewOpt(system)
	}
	p.Input.OfInputItemList = items
	if p.Tools, err = responsesTools(r.Tools); err != nil {
		return nil, err
	}
	if n := m.maxTokens(r); n > 0 {
		p.MaxOutputTokens = param.NewOpt(max(n, minOutput))
	}
	if r.ThreadID != "" {
		p.PromptCacheKey = param.NewOpt(cacheKey(r.ThreadID))
	}
	if v := r.Override.Temperature; v != nil && has.sampling {
		p.Temperature = param.NewOpt(*v)
	}
	if v := r.Override.TopP; v != nil && has.sampling {
		p.TopP = param.NewOpt(*v)
	}
	if v := r.Override.ReasoningEffort; v != nil && has.reasoning {
		p.Reasoning.Effort = shared.ReasoningEffort(*v)
	}
	return p, nil
}

func (m *Model) countTokens(ctx context.Context, r llm.Request) (int64, error) {
	p, err := m.responsesParams(&r)
	if err != nil {
		return 0, err
	}
	count := &sdk.InputTokenCountParams{
		Model: param.NewOpt(p.Model), Instructions: p.Instructions, Tools: p.Tools, Reasoning: p.Reasoning,
		Input: sdk.InputTokenCountParamsInputUnion{OfResponseInputItemArray: p.Input.OfInputItemList},
	}
	response, err := m.post(ctx, r.Model, "responses/input_tokens", count)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := m.body(ctx, r.Model, response)
	if err != nil {
		return 0, err
	}
	var out struct {
		InputTokens *int64 `json:"input_tokens"`
	}
	if err := json.Unmarshal(body, &out); err != nil || out.InputTokens == nil {
		return 0, &llm.Error{Kind: llm.KindProvider, Model: r.Model, Message: "the answer to a count has no input_tokens", Err: err}
	}
	return *out.InputTokens, nil
}

func responsesTools(tools []abi.Tool) ([]sdk.ToolUnionParam, error) {
	var out []sdk.ToolUnionParam
	for i := range tools {
		t := &tools[i]
		schema, err := parameters(t)
		if err != nil {
			return nil, err
		}
		f := &sdk.FunctionToolParam{Name: fitName(t.Name), Parameters: schema, Strict: param.NewOpt(false)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfFunction: f})
	}
	return out, nil
}

// inputItems writes a conversation; the system messages at its head are apart.
func inputItems(messages []abi.Message, has trait) (system string, out []inputItem, err error) {
	system, n, err := head(messages)
	if err != nil {
		return "", nil, err
	}
	for i := n; i < len(messages); i++ {
		items, err := inputOf(i, &messages[i])
		if err != nil {
			return "", nil, err
		}
		if !has.reasoning { // of another model, which answered before
			items = slices.DeleteFunc(items, func(item inputItem) bool { return item.OfReasoning != nil })
		}
		out = append(out, items...)
	}
	return system, out, nil
}

func inputOf(place int, msg *abi.Message) ([]inputItem, error) {
	switch msg.Role {
	case abi.RoleSystem:
		text, err := textOf(place, msg)
		if err != nil || text == "" {
			return nil, err
		}
		return []inputItem{sdk.ResponseInputItemParamOfMessage(text, sdk.EasyInputMessageRoleDeveloper)}, nil
	case abi.RoleAssistant:
		if _, err := textOf(place, msg); err != nil {
			return nil, err
		}
		return ordered(msg, answerItem, func(c *abi.ToolCall) (inputItem, error) {
			arguments, err := argumentsText(place, c)
			return sdk.ResponseInputItemParamOfFunctionCall(arguments, fitID(c.ID), fitName(c.Name)), err
		})
	case abi.RoleTool:
		output, err := outputOf(place, msg)
		return []inputItem{output}, err
	default:
		parts, err := inputParts(place, msg)
		if err != nil || len(parts) == 0 {
			return nil, err
		}
		return []inputItem{sdk.ResponseInputItemParamOfMessage(sdk.ResponseInputMessageContentListParam(parts), sdk.EasyInputMessageRoleUser)}, nil
	}
}

func answerItem(text string) inputItem {
	return sdk.ResponseInputItemParamOfMessage(text, sdk.EasyInputMessageRoleAssistant)
}

// inputParts are the parts of a message that the API takes.
func inputParts(place int, msg *abi.Message) ([]inputPart, error) {
	var out []inputPart
	for i := range msg.Content {
		b := &msg.Content[i]
		where, found := address(b)
		switch {
		case b.Type == abi.BlockText && b.Text != "":
			out = append(out, sdk.ResponseInputContentParamOfInputText(b.Text))
		case b.Type == abi.BlockText, b.Type == abi.BlockThinking:
		case b.Type != abi.BlockImage && b.Type != abi.BlockDocument:
			return nil, refused(place, msg, i, "the Responses API takes texts, images and documents")
		case !found:
			return nil, refused(place, msg, i, "it has neither a URL nor data with a media type")
		case b.Type == abi.BlockImage:
			out = append(out, inputPart{OfInputImage: &sdk.ResponseInputImageParam{
				Detail: sdk.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(where),
			}})
		case b.URL != "":
			out = append(out, inputPart{OfInputFile: &sdk.ResponseInputFileParam{FileURL: param.NewOpt(where)}})
		default:
			out = append(out, inputPart{OfInputFile: &sdk.ResponseInputFileParam{
				FileData: param.NewOpt(where), Filename: param.NewOpt(fileName(b)),
			}})
		}
	}
	return out, nil
}

// outputOf is the result of a call: a text, or parts where there is more in it.
func outputOf(place int, msg *abi.Message) (inputItem, error) {
	parts, err := inputParts(place, msg)
	if err != nil {
		return inputItem{}, err
	}
	var list sdk.ResponseFunctionCallOutputItemListParam
	texts := true
	for _, p := range parts {
		texts = texts && p.OfInputText != nil
		switch {
		case p.OfInputText != nil:
			list = append(list, sdk.ResponseFunctionCallOutputItemParamOfInputText(p.OfInputText.Text))
		case p.OfInputImage != nil:
			list = append(list, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &sdk.ResponseInputImageContentParam{
				Detail: sdk.ResponseInputImageContentDetailAuto, ImageURL: p.OfInputImage.ImageURL,
			}})
		default:
			f := p.OfInputFile
			list = append(list, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputFile: &sdk.ResponseInputFileContentParam{
				FileData: f.FileData, FileURL: f.FileURL, Filename: f.Filename,
			}})
		}
	}
	out := &sdk.ResponseInputItemFunctionCallOutputParam{CallID: fitID(msg.ToolCallID)}
	if texts {
		out.Output.OfString = param.NewOpt(msg.Text())
	} else {
		out.Output.OfResponseFunctionCallOutputItemArray = list
	}
	return inputItem{OfFunctionCallOutput: out}, nil
}
