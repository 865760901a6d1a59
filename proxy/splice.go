package proxy

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// splices returns all that a lane changes in a request: the compaction, answers with hidden calls, the edits of
// plugins, and hidden tools.
func (x *exchange) splices(r *wire.Request, st *lane.State) []wire.Splice {
	e := &editor{r: r, from: 0}
	if sw := st.Swap; sw != nil && sw.To <= len(r.Items) && sw.From < sw.To {
		e.swap(sw)
	}
	for i := range st.Grafts {
		e.graft(&st.Grafts[i])
	}
	for _, ed := range st.Edits {
		e.edit(ed)
	}
	e.items()
	e.owed(&x.owed)
	e.tools(st.Hidden, st.Left)
	return e.out
}

// edit returns a request with what plugins replaced its texts by, item for item: what they took out is in no summary. It returns nil
// where that cannot be read.
func edit(r *wire.Request, st *lane.State) *wire.Request {
	e := &editor{r: r}
	for _, ed := range st.Edits {
		if len(ed.Value) > 0 {
			e.edit(ed)
		}
	}
	if len(e.out) == 0 {
		return r
	}
	edited, err := wire.Parse(r.Protocol, wire.Apply(r.Body, e.out))
	if err != nil || len(edited.Items) != len(r.Items) {
		return nil
	}
	return edited
}

// editor collects splices of one request.
type editor struct {
	r *wire.Request
	// Items from swapFrom up to from are replaced by a compaction.
	swapFrom, from int
	// before and after are elements that are added to the content of an item, or behind an item.
	before, after map[int][][]byte
	behind        map[int][][]byte
	replaced      map[int]bool
	out           []wire.Splice
}

func (e *editor) add(at wire.Span, val []byte) { e.out = append(e.out, wire.Splice{At: at, New: val}) }

// swap puts a compaction in.
func (e *editor) swap(sw *lane.Swap) {
	e.swapFrom, e.from = sw.From, sw.To
	items := e.r.Items
	val := sw.Item
	if len(sw.Plain) > 0 && e.marksLeft(sw) >= maxMarks {
		val = sw.Plain
	}
	e.add(wire.Span{From: items[sw.From].From, To: items[sw.To-1].To}, val)
}

// maxMarks is how many cache markers Anthropic takes.
const maxMarks = 4

// marksLeft counts the markers of a request without those that go with a compaction.
func (e *editor) marksLeft(sw *lane.Swap) int {
	n := e.r.Marks()
	for i := sw.From; i < sw.To; i++ {
		for _, b := range e.r.Items[i].Blocks {
			if b.Mark.Exists() {
				n--
			}
		}
	}
	return n
}

// gone reports whether an item is replaced by a compaction.
func (e *editor) gone(i int) bool { return i >= e.swapFrom && i < e.from || i >= len(e.r.Items) }

// graft puts an answer back whose hidden calls the client does not know, if the client still has that answer.
func (e *editor) graft(g *lane.Graft) {
	items := e.r.Items
	end := g.At + len(g.Keys)
	if e.gone(g.At) || end > len(items) {
		return
	}
	for k, want := range g.Keys {
		if it := &items[g.At+k]; it.Role != wire.Assistant || e.r.Key(g.At+k) != want {
			return // the client's own edit
		}
	}
	if len(g.Results) > 0 && (end >= len(items) || items[end].Role != wire.User) {
		return
	}
	if e.replaced == nil {
		e.replaced = map[int]bool{}
	}
	for k := range g.Keys {
		e.replaced[g.At+k] = true
	}
	e.add(wire.Span{From: items[g.At].From, To: items[end-1].To}, join(g.Items))
	for _, res := range g.Results {
		e.before = put(e.before, end, res)
	}
}

func join(list []json.RawMessage) []byte {
	raw := make([][]byte, len(list))
	for i := range list {
		raw[i] = list[i]
	}
	return bytes.Join(raw, []byte(","))
}

func put(m map[int][][]byte, i int, val []byte) map[int][][]byte {
	if m == nil {
		m = map[int][][]byte{}
	}
	m[i] = append(m[i], val)
	return m
}

// edit repeats an edit of a plugin.
func (e *editor) edit(ed lane.Edit) {
	if e.gone(ed.Item) || e.replaced[ed.Item] {
		return
	}
	it := &e.r.Items[ed.Item]
	switch {
	case len(ed.Value) > 0:
		e.value(it, ed)
	case e.r.Protocol == wire.Messages && it.Content.Exists():
		block := append([]byte(`{"type":"text","text":`), wire.Quote(ed.Text)...)
		e.after = put(e.after, ed.Item, append(block, '}'))
	default:
		e.behind = put(e.behind, ed.Item, wire.UserItem(e.r.Protocol, nil, ed.Text))
	}
}

// value replaces the text or the result of a block. Of an item with several texts the first has the new one, and the
// others go.
func (e *editor) value(it *wire.Item, ed lane.Edit) {
	if ed.Block >= 0 {
		if ed.Block < len(it.Blocks) {
			e.replace(&it.Blocks[ed.Block], ed.Value)
		}
		return
	}
	first := true
	for j := range it.Blocks {
		b := &it.Blocks[j]
		switch {
		case b.Type == wire.TypeResult && len(it.Blocks) == 1, b.Type == wire.TypeText && first:
			e.replace(b, ed.Value)
			first = false
		case b.Type == wire.TypeText:
			e.out = append(e.out, wire.Cut(e.r.Body, b.Span))
		}
	}
}

func (e *editor) replace(b *wire.Block, val []byte) {
	if b.Type != wire.TypeResult && b.Type != wire.TypeText {
		return
	}
	if b.Type == wire.TypeText && string(val) == `""` {
		val = []byte(`"(removed)"`) // a text must not be empty
	}
	if b.Value.Exists() {
		e.add(b.Value, e.r.Worded(b, val))
		return
	}
	e.out = append(e.out, wire.AddField(e.r.Body, b.Span, "content", val))
}

// items adds what was collected for the contents of items.
func (e *editor) items() {
	for i := range e.r.Items {
		it := &e.r.Items[i]
		before, after := e.before[i], e.after[i]
		if len(before)+len(after) > 0 {
			e.content(it, before, after)
		}
		if list := e.behind[i]; len(list) > 0 {
			e.add(wire.Span{From: it.To, To: it.To}, append([]byte(","), bytes.Join(list, []byte(","))...))
		}
	}
}

func (e *editor) content(it *wire.Item, before, after [][]byte) {
	comma := []byte(",")
	if it.Plain {
		open := append([]byte("["), bytes.Join(append(slices.Clone(before), []byte(`{"type":"text","text":`)), comma)...)
		// In front of a replacement of the text itself, which begins at the same place.
		e.out = slices.Insert(e.out, 0, wire.Splice{At: wire.Span{From: it.Content.From, To: it.Content.From}, New: open})
		end := append([]byte("}"), bytes.Join(append([][]byte{nil}, after...), comma)...)
		e.add(wire.Span{From: it.Content.To, To: it.Content.To}, append(end, ']'))
		return
	}
	if len(before) > 0 {
		at := it.Content.From + 1
		add := bytes.Join(before, comma)
		if len(it.Blocks) > 0 {
			add = append(add, ',')
		}
		e.add(wire.Span{From: at, To: at}, add)
	}
	if len(after) > 0 {
		e.out = append(e.out, wire.Append(e.r.Body, it.Content, after...))
	}
}

// tools adds hidden tools behind the client's, and leaves some out.
func (e *editor) tools(hidden []json.RawMessage, left []string) {
	e.out = append(e.out, e.r.Without(left)...)
	if !e.r.TakesTools() || len(hidden) == 0 {
		return
	}
	var list [][]byte
	for _, h := range hidden {
		list = append(list, h)
	}
	e.out = append(e.out, wire.Append(e.r.Body, e.r.Top["tools"], list...))
}
