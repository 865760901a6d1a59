package mortise

import "errors"

// Messages are the messages of an [Event]. It is a slice as any other, but its
// elements are read from the input when they are asked for, so a hook pays for
// what it looks at and not for the length of the conversation:
//
//	for i, m := range e.Messages {
//		if m.Role() == mortise.RoleUser { ... m.Text() ... }
//	}
type Messages []MessageView

// MessagesOf returns messages as an Event holds them, for tests.
func MessagesOf(list ...Message) Messages {
	if list == nil {
		return nil
	}
	shared := &messageList{values: list}
	views := make(Messages, len(list))
	for i := range list {
		views[i] = MessageView{list: shared, place: uint32(i)}
	}
	return views
}

// Last returns the last message, or false when there is none.
func (s Messages) Last() (MessageView, bool) {
	if len(s) == 0 {
		return MessageView{}, false
	}
	return s[len(s)-1], true
}

// Err returns the first error that reading any of the messages met, with an offset
// that counts from the start of that message. Such a read gave a zero value. Package plugin looks at it after each hook and answers the
// call with it, so a hook need not.
func (s Messages) Err() error {
	if len(s) == 0 || s[0].list == nil {
		return nil
	}
	return s[0].list.err
}

func (s Messages) marshalTo(e *Encoder) {
	if s == nil {
		e.Nil()
		return
	}
	e.OpenArray(len(s))
	for _, v := range s {
		if m := v.given(); m != nil {
			m.MarshalTo(e)
		} else {
			e.raw(v.raw())
		}
	}
	e.Close()
}

// MessageView is one message of an [Event]. It has a method for each field of
// [Message], which reads that field and nothing else; ask once for what you need
// twice. A MessageView is small and is passed by value. It is valid as long as
// any other string of the input. The zero MessageView is an empty message.
type MessageView struct {
	list *messageList
	// at is where the message stands in the input, place its place among the others and,
	// in the highest byte, the mark of its role.
	at, place uint32
}

// placeBits are those of a place.
const placeBits = 24

func (v MessageView) index() int { return int(v.place & (1<<placeBits - 1)) }

// messageList is what all views of an input share.
type messageList struct {
	s string
	// marks are those of the host's index, or made here, see [FieldMessageIndex].
	marks string
	// values is set by MessagesOf.
	values []Message
	err    error // the first
	// unsent is set when the host has kept the messages of the call with that number.
	// Chunks are what was read of them.
	unsent bool
	call   int
	chunks []chunk
}

// given is the message if MessagesOf made the view, else nil.
func (v MessageView) given() *Message {
	if v.list == nil || v.list.values == nil {
		return nil
	}
	return &v.list.values[v.index()]
}

// raw is the encoded message, of which is known that all of it is there. It is empty
// if that cannot be read.
func (v MessageView) raw() string {
	if v.list == nil || v.list.marks == "" {
		return ""
	}
	if v.list.unsent {
		return v.list.fetch(v)
	}
	return v.list.s[v.at:][:markedSize(v.list.marks, v.index())]
}

// Role reads the field of [Message] with that name. Mostly the host's index says it.
func (v MessageView) Role() Role {
	if mark := v.place >> placeBits; mark != 0 {
		return roles[mark%uint32(len(roles))]
	}
	return v.readRole()
}

func (v MessageView) readRole() Role {
	if m := v.given(); m != nil {
		return m.Role
	}
	return Role(v.str("role"))
}

// roles are those that have a mark.
var roles = [...]Role{MarkSystem: RoleSystem, MarkUser: RoleUser, MarkAssistant: RoleAssistant, MarkTool: RoleTool}

// Message returns the whole message.
func (v MessageView) Message() Message {
	if m := v.given(); m != nil {
		return *m
	}
	var m Message
	if d := v.decoder(); d.s != "" {
		m.UnmarshalFrom(&d)
		v.keep(d.err)
	}
	return m
}

// Text returns the text blocks of the message, joined without a separator.
func (v MessageView) Text() string {
	if text, ok := v.onlyText(); ok {
		return text
	}
	m := Message{Content: v.Content()}
	return m.Text()
}

// onlyText reads the text of a message that has one block, of text and nothing else, as
// most have.
func (v MessageView) onlyText() (string, bool) {
	const header = "\x91\x82\xa4type\xa4text\xa4text"
	raw := v.raw()
	at := seek(raw, "content")
	if at < 0 || len(raw)-at < len(header) || raw[at:at+len(header)] != header {
		return "", false
	}
	d := Decoder{s: raw, pos: at + len(header)}
	text := d.Str()
	return text, d.err == nil
}

// find moves d, which reads the message, to the value of a field. It returns false
// when the message has no such field.
func (v MessageView) find(d *Decoder, key string) bool {
	at := seek(d.s, key)
	switch {
	case at >= 0:
		d.pos, d.depth = at, viewDepth
		return true
	case at == -1 || d.s == "":
		return false
	}
	n, ok := d.OpenMap()
	if !ok {
		v.keep(d.err)
		return false
	}
	for range n {
		if d.Key() == key {
			return true
		}
		d.Skip()
		if d.err != nil {
			break
		}
	}
	v.keep(d.err)
	return false
}

// str reads a field that is a string. Short ones are common.
func (v MessageView) str(key string) string {
	d := v.decoder()
	at := seek(d.s, key)
	if at >= 0 && d.s[at]&0xe0 == 0xa0 {
		end := at + 1 + int(d.s[at]&0x1f)
		if end <= len(d.s) {
			return d.s[at+1 : end]
		}
	}
	if at == -1 || !v.find(&d, key) {
		return ""
	}
	x := d.Str()
	v.keep(d.err)
	return x
}

// keep remembers the first error.
func (v MessageView) keep(err error) {
	if err == nil || v.list == nil || v.list.err != nil {
		return
	}
	v.list.err = err
	var refused *DecodeError
	if errors.As(err, &refused) {
		v.list.err = &DecodeError{Offset: refused.Offset, What: "of a message: " + refused.What}
	}
}

// viewDepth is how deep the fields of a message of an event stand: in the map of the
// event, the array and the map of the message.
const viewDepth = 3

func (v MessageView) decoder() Decoder { return Decoder{s: v.raw(), depth: viewDepth - 1} }
