package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on a result besides ServerConfig.MaxOutput, in bytes of base64 and in blocks, and on the text of an error.
const (
	maxMedia     = 4 << 20
	maxBlocks    = 256
	maxMediaType = 128
	maxErrorText = 4 << 10
)

// render makes a server's answer the result of a call.
func (s *server) render(out *abi.ToolResult, got *sdk.CallToolResult) {
	if got.NeedsInput() {
		out.Message = "Execution failed: the server asks for input, which is not offered to it"
		return
	}
	out.Status = abi.ToolSuccess
	if got.IsError {
		out.Status = abi.ToolError
	}
	w := writer{text: s.cfg.MaxOutput, media: maxMedia}
	for i, c := range got.Content {
		if i == maxBlocks {
			w.note(fmt.Sprintf("[%d more blocks are left out: a result may have %d]", len(got.Content)-maxBlocks, maxBlocks))
			break
		}
		w.content(c)
	}
	if got.StructuredContent != nil {
		data, err := json.Marshal(got.StructuredContent)
		switch {
		case err != nil:
		case len(data) <= w.text:
			out.Data = got.StructuredContent
		case len(w.blocks) == 0:
			w.write(string(data))
		}
	}
	if out.Content = w.blocks; len(w.blocks) == 0 && out.Data == nil {
		out.Message = "[the tool returned nothing]"
	}
}

// writer collects the blocks of a result, within its bounds.
type writer struct {
	blocks      []abi.ContentBlock
	text, media int // bytes that are left
}

func (w *writer) content(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		w.write(c.Text)
	case *sdk.ImageContent:
		w.attach(abi.BlockImage, c.MIMEType, "", c.Data)
	case *sdk.AudioContent:
		w.attach(abi.BlockAudio, c.MIMEType, "", c.Data)
	case *sdk.ResourceLink:
		w.write(link(c))
	case *sdk.EmbeddedResource:
		w.resource(c.Resource)
	default:
		w.note("[content of an unknown type is left out]")
	}
}

// resource shows a resource that came with a result.
func (w *writer) resource(r *sdk.ResourceContents) {
	if r == nil {
		return
	}
	if r.Blob == nil {
		w.write("Resource " + r.URI + ":\n" + r.Text)
		return
	}
	kind := abi.BlockDocument
	switch major, _, _ := strings.Cut(r.MIMEType, "/"); major {
	case "image":
		kind = abi.BlockImage
	case "audio":
		kind = abi.BlockAudio
	}
	w.attach(kind, r.MIMEType, r.URI, r.Blob)
}

// link describes a resource, which the model may ask another tool for. It is no media block: providers fetch these.
func link(l *sdk.ResourceLink) string {
	parts := []string{"Resource " + l.URI}
	for _, more := range []string{l.Name, l.Title, l.MIMEType, l.Description} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, ", ")
}

// write adds a text, or the beginning of it that fits.
func (w *writer) write(text string) {
	kept := clip(text, w.text)
	w.text -= len(kept)
	if cut := len(text) - len(kept); cut > 0 {
		kept += fmt.Sprintf("\n[%d bytes are cut off]", cut)
	}
	w.note(kept)
}

// attach adds media, or a line about what did not fit.
func (w *writer) attach(kind abi.BlockType, mediaType, title string, data []byte) {
	size := base64.StdEncoding.EncodedLen(len(data))
	mediaType, title = clip(mediaType, maxMediaType), clip(title, maxErrorText)
	if size > w.media {
		w.note(fmt.Sprintf("[%s of type %s with %d bytes is left out: it is too large]", kind, mediaType, len(data)))
		return
	}
	w.media -= size
	w.blocks = append(w.blocks, abi.ContentBlock{Type: kind, MediaType: mediaType, Title: title, Data: base64.StdEncoding.EncodeToString(data)})
}

func (w *writer) note(text string) { w.blocks = append(w.blocks, abi.Text(text)) }

// clip is the beginning of a text that has at most so many bytes, without half a character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
