package transcript

import (
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// media is the union of what stands in the fields of media blocks.
type media struct {
	Type      looseString
	MediaType looseString `json:"media_type"`
	Data      looseString
	URL       looseString
	Format    looseString
	FileData  looseString `json:"file_data"`
	Filename  looseString
}

// parseMedia reads an object, or an address as a string.
func parseMedia(raw json.RawMessage) (media, bool) {
	var m media
	switch first(raw) {
	case '{':
		return m, json.Unmarshal(raw, &m) == nil
	case '"':
		return m, json.Unmarshal(raw, &m.URL) == nil
	}
	return m, false
}

// media returns the block as a media block; false when it is none or empty.
func (b *block) media() (abi.ContentBlock, bool) {
	out := abi.ContentBlock{Title: string(b.Title)}
	switch b.Type {
	case "image", "image_url", "input_image":
		out.Type = abi.BlockImage
	case "document", "file", "input_file":
		out.Type = abi.BlockDocument
	case "audio", "input_audio":
		out.Type = abi.BlockAudio
	case "video":
		out.Type = abi.BlockVideo
	default:
		return out, false
	}
	if m, ok := parseMedia(b.Source); ok {
		if m.Type == "text" { // the document is the text itself
			return abi.Text(string(m.Data)), m.Data != ""
		}
		out.MediaType, out.Data, out.URL = string(m.MediaType), string(m.Data), string(m.URL)
	} else if m, ok := parseMedia(b.ImageURL); ok {
		address(&out, string(m.URL))
	} else if m, ok := parseMedia(b.InputAudio); ok {
		out.MediaType, out.Data = "audio/"+string(m.Format), string(m.Data)
	} else if m, ok := parseMedia(b.File); ok {
		address(&out, string(m.FileData))
		out.Title = string(m.Filename)
	} else {
		b.file(&out)
	}
	return out, out.Data != "" || out.URL != ""
}

// address sets a URL; a data URL is taken apart.
func address(b *abi.ContentBlock, url string) {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if kind, data, ok := strings.Cut(rest, ";base64,"); ok {
			b.MediaType, b.Data = kind, data
			return
		}
	}
	b.URL = url
}
