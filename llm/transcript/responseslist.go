package transcript

import (
	"github.com/mortise-dev/mortise/abi"
)

// responses reads a request, an answer or a list of items of the Responses API.
func (d *dataset) responses(o object, lines *lineCounter) (draft, error) {
	l := &messageList{r: d.r, format: FormatResponses, items: &itemReader{r: d.r, open: -1}}
	if text := o.text("instructions"); text != "" {
		var c content
		c.text(text)
		if err := d.r.add(&l.draft, Entry{Message: abi.Message{Role: abi.RoleSystem}, Line: lines.line}, c); err != nil {
			return l.draft, err
		}
	}
	for _, field := range []string{"input", "data", "output"} {
		if err := d.responseItems(l, o[field], lines); err != nil {
			return l.draft, err
		}
	}
	if at := l.draft.lastAnswer(); at >= 0 && o.text("object") == "response" {
		last := &l.draft.entries[at]
		last.Usage, last.Model = parseUsage(o["usage"].raw), o.text("model")
	}
	l.draft.id = o.text("id")
	return l.draft, nil
}

// responseItems reads a list of items, or the text of the user that replaces it.
func (d *dataset) responseItems(l *messageList, v value, lines *lineCounter) error {
	switch first(v.raw) {
	case '"':
		var c content
		if err := c.parse(v.raw); err != nil {
			return err
		}
		return l.items.message(&l.draft, Entry{Message: abi.Message{Role: abi.RoleUser}, Line: lines.at(v.offset)}, c)
	case '[':
	default:
		return nil
	}
	for offset, part := range elements(v.raw) {
		if err := l.record(lines.at(v.offset+offset), part); err != nil {
			if err := d.broken(lines.line, err); err != nil {
				return err
			}
		}
	}
	return nil
}
