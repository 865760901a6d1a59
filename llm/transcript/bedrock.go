package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// bedrockBlock has the fields of content blocks of the Converse API of Amazon
// Bedrock, which have no type: the one field that is set is their type.
type bedrockBlock struct {
	ToolUse          loose[bedrockCall]
	ToolResult       loose[bedrockResult]
	ReasoningContent loose[bedrockReasoning]
	JSON             json.RawMessage `json:"json"`
	Document         loose[bedrockMedia]
	Video            loose[bedrockMedia]
	Audio            loose[bedrockMedia]
	CachePoint       json.RawMessage
}

type bedrockCall struct {
	ToolUseID looseString `json:"toolUseId"`
	Name      looseString
	Input     json.RawMessage
}

type bedrockResult struct {
	ToolUseID looseString `json:"toolUseId"`
	Status    looseString
	Content   json.RawMessage
}

type bedrockReasoning struct {
	ReasoningText   struct{ Text, Signature looseString }
	RedactedContent looseString
}

type bedrockMedia struct {
	Format looseString
	Name   looseString
	Source struct {
		Bytes      looseString
		Text       looseString
		S3Location struct{ URI looseString }
	}
}

// untyped reads a block without a type.
func (c *content) untyped(b *block, raw []byte) error {
	switch {
	case b.ToolUse.value != nil:
		c.is(FormatBedrock)
		return c.addCall(string(b.ToolUse.value.ToolUseID), string(b.ToolUse.value.Name), arguments(b.ToolUse.value.Input))
	case b.ToolResult.value != nil:
		c.is(FormatBedrock)
		var inner content
		if err := inner.parse(b.ToolResult.value.Content); err != nil {
			return err
		}
		return c.addResult(string(b.ToolResult.value.ToolUseID), b.ToolResult.value.Status == "error", inner)
	case b.ReasoningContent.value != nil:
		c.is(FormatBedrock)
		r := &b.ReasoningContent.value.ReasoningText
		signature := r.Signature + b.ReasoningContent.value.RedactedContent
		if r.Text != "" || signature != "" {
			c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: string(r.Text), Signature: string(signature)})
		}
	case b.Text != "":
		c.is(FormatBedrock)
		c.text(string(b.Text))
	case b.JSON != nil:
		c.add(abi.Text(rendered(b.JSON).string()))
	case b.CachePoint != nil:
	default:
		c.bedrockMedia(b, raw)
	}
	return nil
}

func (c *content) bedrockMedia(b *block, raw []byte) {
	var image loose[bedrockMedia]
	_ = image.UnmarshalJSON(b.Image) // never fails
	for _, k := range []struct {
		media *bedrockMedia
		kind  abi.BlockType
		mime  string
	}{
		{image.value, abi.BlockImage, "image/"},
		{b.Document.value, abi.BlockDocument, ""},
		{b.Video.value, abi.BlockVideo, "video/"},
		{b.Audio.value, abi.BlockAudio, "audio/"},
	} {
		if k.media == nil {
			continue
		}
		c.is(FormatBedrock)
		if text := k.media.Source.Text; text != "" { // the document is the text itself
			c.text(string(text))
			return
		}
		out := abi.ContentBlock{
			Type: k.kind, Title: string(k.media.Name), Data: string(k.media.Source.Bytes), URL: string(k.media.Source.S3Location.URI),
		}
		if k.mime != "" {
			out.MediaType = k.mime + string(k.media.Format)
		}
		c.add(out)
		return
	}
	o, _ := parseObject(raw)
	if len(o) > 0 {
		c.unknown = append(c.unknown, "without a type, with "+strings.Join(slices.Sorted(maps.Keys(o)), ", "))
	}
}
