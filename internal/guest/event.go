package guest

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// packedEvent puts an event together from the encodings of its messages and the rest,
// without copying them: parts, one behind the other, are the event in MessagePack. It is
// what a guest reads of its messages, too.
type packedEvent struct {
	// lazy is set when the messages are not among the parts.
	lazy   bool
	pieces []piece
	parts  [][]byte
	// fields are those before and behind index and messages, and what stands between
	// these two, which ends at middle and tail.
	fields       []byte
	middle, tail int
	// fresh are the encodings of messages that were not kept; those that are kept now stand
	// on their tape, too. missing is how many these are.
	fresh      []byte
	freshEnds  []int
	freshMarks []byte
	missing    int
}

// pack encodes an event with what is kept of its messages, for use until unpack. A lazy
// event has their index only.
func (m *messageCache) pack(e *abi.Event, lazy bool) (*packedEvent, error) {
	p, ok := m.events.Get().(*packedEvent)
	if !ok {
		p = &packedEvent{}
	}
	p.lazy = lazy
	err := m.fill(p, e)
	if err != nil {
		m.unpack(p)
		return nil, err
	}
	return p, nil
}

// unpack lets go of the event; the room for its parts stays.
func (m *messageCache) unpack(p *packedEvent) {
	clear(p.pieces)
	clear(p.parts)
	p.pieces, p.parts, p.fields, p.missing = p.pieces[:0], p.parts[:0], p.fields[:0], 0
	p.fresh, p.freshEnds, p.freshMarks = p.fresh[:0], p.freshEnds[:0], p.freshMarks[:0]
	if cap(p.fields) <= maxFields && cap(p.fresh) <= maxFields {
		m.events.Put(p)
	}
}

// maxFields is the largest buffer, in bytes, that is used again.
const maxFields = 1 << 20

func (m *messageCache) fill(p *packedEvent, e *abi.Event) error {
	m.find(e, p)
	if p.missing > 0 {
		if err := m.add(e, p); err != nil {
			return err
		}
	}
	if err := p.write(e); err != nil {
		return err
	}
	p.gather()
	return nil
}

// fill gives the pieces that are missing what was encoded of them.
func (p *packedEvent) fill() {
	start, at := 0, 0
	for i := range p.pieces {
		c := &p.pieces[i]
		if !c.missing {
			continue
		}
		ends := p.freshEnds[at : at+c.n]
		c.start, c.ends, c.data = start, ends, p.fresh[start:ends[c.n-1]]
		c.marks = p.freshMarks[at*abi.MessageMarkSize : (at+c.n)*abi.MessageMarkSize]
		start, at = ends[c.n-1], at+c.n
	}
}

// gather lists the parts.
func (p *packedEvent) gather() {
	p.parts = append(p.parts, p.fields[:p.middle])
	for i := range p.pieces {
		p.parts = append(p.parts, p.pieces[i].marks)
	}
	if !p.lazy {
		p.parts = append(p.parts, p.fields[p.middle:p.tail])
		for i := range p.pieces {
			p.parts = append(p.parts, p.pieces[i].data)
		}
	}
	p.parts = append(p.parts, p.fields[p.tail:])
}

// write encodes all but the messages, in the order of the contract.
func (p *packedEvent) write(e *abi.Event) error {
	w := fieldWriter{buf: append(p.fields, 0)} // the header is written last, when it is known
	w.integer("abi", e.ABI)
	w.text("phase", string(e.Phase))
	w.run(&e.Run)
	if e.NowMS != 0 {
		w.key("now_ms")
		w.buf = wire.AppendInt(w.buf, e.NowMS)
	}
	w.integer("step", e.Step)
	w.key(abi.FieldMessageIndex)
	w.buf = wire.AppendBinary(w.buf, abi.MessageMarkSize*len(e.Messages))
	p.middle = len(w.buf)
	if !p.lazy {
		w.key("messages")
		w.buf = wire.AppendArray(w.buf, len(e.Messages))
	}
	p.tail = len(w.buf)
	if e.MessagesFrom != 0 {
		w.integer("messages_from", e.MessagesFrom)
	}
	w.integer("messages_total", e.MessagesTotal)
	w.occasion(e)
	p.fields = w.buf
	return w.header(p)
}

// fieldWriter appends the fields of an event, which is a map.
type fieldWriter struct {
	buf []byte
	n   int
	err error
}

// occasion writes what belongs to the phase.
func (w *fieldWriter) occasion(e *abi.Event) {
	if len(e.State) > 0 {
		w.value("state", e.State)
	}
	if e.Request != nil {
		w.value("request", e.Request)
	}
	if e.Response != nil {
		w.value("response", e.Response)
	}
	if e.Call != nil {
		w.value("call", e.Call)
	}
	if len(e.RewrittenBy) > 0 {
		w.value("rewritten_by", e.RewrittenBy)
	}
	if e.Result != nil {
		w.value("result", e.Result)
	}
	w.optional("result_message_id", e.ResultMessageID)
	if len(e.Notices) > 0 {
		w.value("notices", e.Notices)
	}
	if e.Action != nil {
		w.value("action", e.Action)
	}
	if e.Effect != nil {
		w.value("effect", e.Effect)
	}
	if e.Compaction != nil {
		w.value("compaction", e.Compaction)
	}
	if e.End != nil {
		w.value("end", e.End)
	}
	if e.Config != nil {
		w.value("config", e.Config)
	}
}

// header writes the number of fields, up to 15 into the byte that was left for it.
func (w *fieldWriter) header(p *packedEvent) error {
	if w.n < 16 {
		wire.AppendMap(p.fields[:0], w.n)
		return w.err
	}
	wide := wire.AppendMap(nil, w.n)
	p.fields = slices.Concat(wide, w.buf[1:])
	p.middle += len(wide) - 1
	p.tail += len(wide) - 1
	return w.err
}

func (w *fieldWriter) key(name string) {
	w.n++
	w.buf = wire.AppendKey(w.buf, name)
}

func (w *fieldWriter) integer(name string, v int) {
	w.key(name)
	w.buf = wire.AppendInt(w.buf, int64(v))
}

func (w *fieldWriter) text(name, v string) {
	w.key(name)
	w.buf = wire.AppendString(w.buf, v)
}

// value writes a field of any other kind.
func (w *fieldWriter) value(name string, v any) {
	w.key(name)
	if w.err != nil {
		return
	}
	if w.buf, w.err = wire.AppendValue(w.buf, v, 1); w.err != nil {
		w.err = fmt.Errorf("%s: %w", name, w.err)
	}
}

// run writes the identity, a map in the map.
func (w *fieldWriter) run(r *abi.RunIdentity) {
	w.key("run")
	fields, header := w.n, len(w.buf)
	w.buf = append(w.buf, 0) // there are fewer than 16 fields
	w.n = 0
	w.text("thread_id", r.ThreadID)
	w.text("run_id", r.RunID)
	w.optional("parent_run_id", r.ParentRunID)
	w.optional("agent_id", r.AgentID)
	w.optional("dispatch_id", r.DispatchID)
	w.optional("session_id", r.SessionID)
	w.optional("mode", string(r.Mode))
	w.optional("adapter", r.Adapter)
	w.optional("origin", r.Origin)
	w.optional("parent_thread_id", r.ParentThreadID)
	w.optional("sender_id", r.SenderID)
	w.optional("transport_request_id", r.TransportRequestID)
	w.optional("dispatch_id_hint", r.DispatchIDHint)
	wire.AppendMap(w.buf[:header], w.n)
	w.n = fields
}

// optional writes a text that is not empty.
func (w *fieldWriter) optional(name, v string) {
	if v != "" {
		w.text(name, v)
	}
}
