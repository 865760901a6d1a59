package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// messages fills in what plugins see of each item that no compaction replaces, with the edits that were made.
func (x *exchange) messages() {
	for i := range x.req.Items {
		if i == len(x.ln.Messages) {
			x.ln.Messages = append(x.ln.Messages, nil)
		}
		if x.ln.Messages[i] == nil && (!x.ln.Swap.Has(i) || i >= x.ln.Kept) {
			x.ln.Messages[i] = converted(x.req, x.ln.State, i)
		}
	}
}

// converted are the messages of an item, with the edits that were made.
func converted(r *wire.Request, st *lane.State, i int) []abi.Message {
	list := r.Convert(i)
	for _, e := range st.Edits {
		if e.Item == i && len(e.Value) > 0 {
			edited(list, e)
		}
	}
	return list
}

// edited applies a stored edit to the messages of its item.
func edited(list []abi.Message, e lane.Edit) {
	id := "i" + strconv.Itoa(e.Item)
	for j := range list {
		if m := &list[j]; m.ID == id || m.ID == fmt.Sprintf("%s.%d", id, e.Block) {
			m.Content = []abi.ContentBlock{abi.Text(wire.String(e.Value, wire.Whole(e.Value)))}
			return
		}
	}
}

// flat are the messages that the model sees: with a compaction instead of those that it replaces.
func (x *exchange) flat() []abi.Message {
	sw := x.ln.Swap
	if sw == nil || sw.To > len(x.ln.Messages) {
		return slices.Concat(x.ln.Messages...)
	}
	return slices.Concat(slices.Concat(x.ln.Messages[:sw.From]...), wire.Inserted(x.proto, sw.Item, "summary/"), slices.Concat(x.ln.Messages[sw.To:]...))
}

// userTurn reports whether the request begins a turn of the user: its last message has words of a person.
func (x *exchange) userTurn() bool {
	i := lastWords(x.req)
	return i >= 0 && x.change != lane.Retry && spoken(x.req, i)
}

// lastWords returns the last item that is no system message, -1 where there is none: a client may put one at the end.
func lastWords(r *wire.Request) int {
	for i := range slices.Backward(r.Items) {
		if r.Items[i].Role != wire.System {
			return i
		}
	}
	return -1
}

// spoken reports whether an item has words of a person.
func spoken(r *wire.Request, i int) bool {
	it := &r.Items[i]
	if it.Role != wire.User {
		return false
	}
	for _, b := range it.Blocks {
		if b.Type == wire.TypeText && !written(wire.String(r.Body, b.Value)) {
			return true
		}
	}
	return false
}

// written reports whether a program wrote a text of a user's message.
func written(text string) bool {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{
		"<system-reminder", "<environment_context", "<user_instructions", "<permissions instructions", "# AGENTS.md", standInHead,
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return text == ""
}
