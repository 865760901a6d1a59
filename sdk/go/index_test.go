package mortise_test

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// mark is one entry of an index.
func mark(size int, role byte) string {
	return string(append(binary.LittleEndian.AppendUint32(nil, uint32(size)), role, 0, 0, 0))
}

// indexed is an event with an index in front of its messages, which are encoded.
func indexed(index string, messages ...string) []byte {
	out := "\x82\xadmessage_index\xc5" + string(binary.BigEndian.AppendUint16(nil, uint16(len(index)))) + index
	out += "\xa8messages" + string(rune(0)) // one byte, replaced below
	data := []byte(out)
	data[len(data)-1] = 0x90 | byte(len(messages))
	for _, m := range messages {
		data = append(data, m...)
	}
	return data
}

// TestIndex: with an index messages are those that they are without one.
func TestIndex(t *testing.T) {
	t.Parallel()
	want := sampleMessages()
	want[2].Role = "judge" // a role that has no mark
	marks := []byte{mortise.MarkUser, mortise.MarkAssistant, 0}
	var index string
	var encoded []string
	for i := range want {
		data, err := mortise.Marshal(&want[i])
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, string(data))
		index += mark(len(data), marks[i])
	}
	short := index[:len(index)-mortise.MessageMarkSize]
	for name, data := range map[string][]byte{
		"index":            indexed(index, encoded...),
		"empty":            indexed("", encoded...),
		"too short":        indexed(short, encoded...),
		"too long":         indexed(index+mark(1, 1), encoded...),
		"broken off":       indexed(index[:len(index)-1], encoded...),
		"beyond the end":   indexed(short+mark(1<<20, 0), encoded...),
		"unknown mark":     indexed(short+mark(len(encoded[2]), 99), encoded...),
		"largest size":     indexed(short+mark(1<<32-1, 0), encoded...),
		"nil for an index": slices.Concat([]byte("\x82\xadmessage_index\xc0"), indexed("", encoded...)[18:]),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e mortise.Event
			if err := mortise.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			var roles []mortise.Role
			for i, m := range e.Messages {
				roles = append(roles, m.Role())
				if got := m.Message(); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("message %d: %+v, want %+v", i, got, want[i])
				}
				if got := fields(t, m); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("message %d by fields: %+v", i, got)
				}
				if m.Text() != want[i].Text() {
					t.Errorf("message %d: text %q", i, m.Text())
				}
			}
			if !slices.Equal(roles, []mortise.Role{mortise.RoleUser, mortise.RoleAssistant, "judge"}) || e.Messages.Err() != nil {
				t.Errorf("roles %q, error %v", roles, e.Messages.Err())
			}
		})
	}
}

// TestIndexRoles: each mark denotes its role.
func TestIndexRoles(t *testing.T) {
	t.Parallel()
	marks := map[byte]mortise.Role{
		mortise.MarkSystem: mortise.RoleSystem, mortise.MarkUser: mortise.RoleUser,
		mortise.MarkAssistant: mortise.RoleAssistant, mortise.MarkTool: mortise.RoleTool,
	}
	for m, want := range marks {
		var e mortise.Event
		if err := mortise.Unmarshal(indexed(mark(1, m), "\x80"), &e); err != nil || e.Messages[0].Role() != want {
			t.Errorf("mark %d: role %q, error %v, want %q", m, e.Messages[0].Role(), err, want)
		}
	}
}

// TestIndexLies: an index that is not that of the messages gives errors, and no panic.
func TestIndexLies(t *testing.T) {
	t.Parallel()
	one := "\x82\xa2id\xa1a\xa4role\xa4user"
	for name, index := range map[string]string{
		"nothing":      mark(0, 1) + mark(0, 1),
		"too little":   mark(len(one)-1, 1) + mark(len(one), 1),
		"inside":       mark(3, 1) + mark(2*len(one)-3, 1),
		"all in first": mark(2*len(one), 1) + mark(0, 1),
	} {
		var e mortise.Event
		err := mortise.Unmarshal(indexed(index, one, one), &e)
		for _, m := range e.Messages {
			fields(t, m)
			m.Message()
			m.Text()
		}
		var refused *mortise.DecodeError
		if err = errors.Join(err, e.Messages.Err()); name != "all in first" && !errors.As(err, &refused) {
			t.Errorf("%s: error %v, want a DecodeError", name, err)
		}
	}
	for _, broken := range []string{"\x81\xadmessage_index\x07", "\x81\xadmessage_index\xc6\xff\xff\xff\xff", "\x81\xadmessage_index\xc5\x00"} {
		var refused *mortise.DecodeError
		if err := mortise.Unmarshal([]byte(broken), new(mortise.Event)); !errors.As(err, &refused) {
			t.Errorf("%q: error %v, want a DecodeError", broken, err)
		}
	}
}
