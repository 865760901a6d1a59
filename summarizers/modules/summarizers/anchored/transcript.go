package anchored

import (
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// caps bound what is read of one message, in bytes.
type caps struct{ prose, output int }

// tighter returns smaller caps, tool outputs first. ok is false when there are none.
func (c caps) tighter() (caps, bool) {
	const leastOutput, leastProse = 200, 600
	switch {
	case c.output > leastOutput:
		return caps{c.prose, max(leastOutput, c.output/2)}, true
	case c.prose > leastProse:
		return caps{max(leastProse, c.prose/2), c.output}, true
	}
	return c, false
}

// transcript writes each message between tags.
func transcript(list []mortise.Message, c caps) []string {
	var out []string
	for i := range list {
		m := &list[i]
		if talk.Hidden(m) {
			continue
		}
		from, most := string(m.Role), c.prose
		if talk.Output(m) {
			from, most = "tool", c.output
		}
		text := talk.Shorten(strings.TrimSpace(m.Text()), most)
		for n := range m.ToolCalls {
			text += "\n(calls " + talk.Call(&m.ToolCalls[n]) + ")"
		}
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, "<message from=\""+from+"\">\n"+escape(text)+"\n</message>\n")
		}
	}
	return out
}

// chunks joins messages to parts of at most room bytes, in their order. A message that is
// longer is cut to pieces.
func chunks(messages []string, room int) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for _, m := range messages {
		if b.Len()+len(m) > room {
			flush()
		}
		for len(m) > room {
			piece := talk.Cut(m, room)
			out = append(out, piece)
			m = m[len(piece):]
		}
		b.WriteString(m)
	}
	flush()
	return out
}
