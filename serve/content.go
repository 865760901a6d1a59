package serve

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// checkContent refuses blocks that no model can be sent: they would stay in the log, and each later run of the thread
// would fail for them. Field is where the request has the message.
func checkContent(m *abi.Message, field string) error {
	for i := range m.Content {
		b := &m.Content[i]
		if name, why := wrongBlock(m.Role, b); why != "" {
			return problem(http.StatusUnprocessableEntity, why, blockHint(m.Role)).about(fmt.Sprintf("%s.content[%d].%s", field, i, name))
		}
	}
	return nil
}

func blockHint(role abi.Role) string {
	if role == abi.RoleSystem {
		return "a message of role system has blocks of type text alone"
	}
	return "blocks are of type text, with text, or image or document, with url, or with data in base64 and media_type"
}

// wrongBlock returns the field of a block that is wrong, and why; nothing if none is.
func wrongBlock(role abi.Role, b *abi.ContentBlock) (field, why string) {
	media := b.Type == abi.BlockImage || b.Type == abi.BlockDocument
	switch {
	case b.Type == abi.BlockText && strings.TrimSpace(b.Text) == "":
		return "text", "the text is empty"
	case b.Type == abi.BlockText:
		return "", ""
	case role == abi.RoleSystem:
		return "type", fmt.Sprintf("type %.40q is not text", b.Type)
	case !media:
		return "type", fmt.Sprintf("type %.40q is none that a model is sent: text, image, document", b.Type)
	case b.URL != "":
		return "", ""
	case b.Data == "":
		return "data", fmt.Sprintf("the %s has neither a url nor data", b.Type)
	case strings.HasPrefix(b.Data, "data:"):
		return "", ""
	case b.Type == abi.BlockImage && b.MediaType == "":
		return "media_type", "the image has data without a media_type"
	}
	if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil {
		return "data", "the data is not base64"
	}
	return "", ""
}
