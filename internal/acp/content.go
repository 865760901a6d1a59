package acp

import (
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
)

// contentOf is what a prompt says.
func contentOf(list []sdk.ContentBlock) (out []abi.ContentBlock, err error) {
	for i := range list {
		b := &list[i]
		switch {
		case b.Text != nil:
			out = append(out, abi.Text(b.Text.Text))
		case b.Image != nil:
			out = append(out, abi.ContentBlock{Type: abi.BlockImage, MediaType: b.Image.MimeType, Data: b.Image.Data})
		case b.Audio != nil:
			out = append(out, abi.ContentBlock{Type: abi.BlockAudio, MediaType: b.Audio.MimeType, Data: b.Audio.Data})
		case b.ResourceLink != nil:
			out = append(out, abi.Text(fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri)))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			out = append(out, abi.Text(fmt.Sprintf("<resource uri=%q>\n%s\n</resource>", r.Uri, r.Text)))
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			c := abi.ContentBlock{Type: abi.BlockDocument, Title: r.Uri, Data: r.Blob}
			if r.MimeType != nil {
				c.MediaType = *r.MimeType
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, invalid("the prompt says nothing", "send text, images, audio or resources")
	}
	return out, nil
}

// blockOf shows content to the client. It is false for what the protocol has no block for.
func blockOf(b *abi.ContentBlock) (sdk.ContentBlock, bool) {
	switch {
	case b.Type == abi.BlockText:
		return sdk.TextBlock(b.Text), true
	case b.Type == abi.BlockImage && b.Data != "":
		return sdk.ImageBlock(b.Data, b.MediaType), true
	case b.Type == abi.BlockAudio && b.Data != "":
		return sdk.AudioBlock(b.Data, b.MediaType), true
	case b.URL != "":
		return sdk.ResourceLinkBlock(string(b.Type), b.URL), true
	}
	return sdk.ContentBlock{}, false
}
