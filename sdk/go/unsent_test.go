package mortise_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/unsent"
)

// kept is a host that has messages and counts how it is asked.
type kept struct {
	messages []string // encoded
	index    string
	asked    [][2]int
}

// keeping makes a host with n messages and lets it answer in this test.
func keeping(t *testing.T, n int) *kept {
	t.Helper()
	k := &kept{}
	roles := []mortise.Role{mortise.RoleUser, mortise.RoleAssistant}
	for i := range n {
		m := mortise.Message{ID: fmt.Sprint("m", i), Role: roles[i%2], Content: []mortise.ContentBlock{mortise.Text(strings.Repeat("x", i))}}
		data, err := mortise.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		k.messages = append(k.messages, string(data))
		k.index += mark(len(data), byte(mortise.MarkUser+i%2))
	}
	read, calls := unsent.Read, unsent.Calls
	unsent.Calls++
	unsent.Read = func(dst []byte, from, to int) int64 {
		all := strings.Join(k.messages[from:to], "")
		if len(dst) >= len(all) {
			k.asked = append(k.asked, [2]int{from, to})
			copy(dst, all)
		}
		return int64(len(all))
	}
	t.Cleanup(func() { unsent.Read, unsent.Calls, unsent.Room = read, calls, nil })
	return k
}

// event decodes an event that holds the index only.
func (k *kept) event(t *testing.T) *mortise.Event {
	t.Helper()
	e := new(mortise.Event)
	if err := mortise.Unmarshal(indexOnly(k.index), e); err != nil || len(e.Messages) != len(k.messages) {
		t.Fatalf("%d messages of %d, error %v", len(e.Messages), len(k.messages), err)
	}
	return e
}

func indexOnly(index string) []byte {
	data := binary.BigEndian.AppendUint16([]byte("\x82\xadmessage_index\xc5"), uint16(len(index)))
	return append(append(data, index...), "\xaemessages_total\x07"...)
}

//nolint:paralleltest // the host is there for the whole module
func TestUnsentMessages(t *testing.T) {
	for _, n := range []int{1, 3, 40, 300} {
		k := keeping(t, n)
		e := k.event(t)
		for i, m := range e.Messages {
			if want := mortise.RoleUser; i%2 == 0 && m.Role() != want {
				t.Errorf("role %q", m.Role())
			}
		}
		if len(k.asked) != 0 {
			t.Errorf("the roles were read from the host: %v", k.asked)
		}
		orders := map[string]func(i int) int{
			"forwards":  func(i int) int { return i },
			"backwards": func(i int) int { return n - 1 - i },
			"scattered": func(i int) int { return i * 7919 % n },
		}
		for name, order := range orders {
			e := k.event(t)
			k.asked = nil
			for i := range n {
				at := order(i)
				if m := e.Messages[at]; m.ID() != fmt.Sprint("m", at) || len(m.Text()) != at {
					t.Fatalf("%d %s: message %d is %+v", n, name, at, m.Message())
				}
			}
			read := 0
			for _, r := range k.asked {
				read += r[1] - r[0]
			}
			if len(k.asked) > 14 || read > 2*n+14 || e.Messages.Err() != nil {
				t.Errorf("%d %s: %d messages in %d readings: %v, error %v", n, name, read, len(k.asked), k.asked, e.Messages.Err())
			}
		}
		e = k.event(t)
		k.asked = nil
		if last, ok := e.Messages.Last(); !ok || last.ID() != fmt.Sprint("m", n-1) || len(last.Text()) != n-1 || !slices.Equal(k.asked, [][2]int{{n - 1, n}}) {
			t.Errorf("one message was read in %v", k.asked)
		}
	}
}

// TestUnsentMessages_encoded: an event can be passed on, and then it is read whole.
//
//nolint:paralleltest // the host is there for the whole module
func TestUnsentMessages_encoded(t *testing.T) {
	k := keeping(t, 5)
	unsent.Room = make([]byte, 100)
	data, err := mortise.Marshal(k.event(t))
	if err != nil || !strings.Contains(string(data), strings.Join(k.messages, "")) {
		t.Errorf("%q, error %v", data, err)
	}
}

// TestUnsentMessages_late: a message that was not read while its call lasted is not read
// from the messages of a later one.
//
//nolint:paralleltest // the host is there for the whole module
func TestUnsentMessages_late(t *testing.T) {
	k := keeping(t, 3)
	e := k.event(t)
	read, not := e.Messages[0], e.Messages[1]
	if read.ID() != "m0" {
		t.Error("not read")
	}
	unsent.Calls++
	if read.ID() != "m0" || e.Messages.Err() != nil {
		t.Errorf("what was read is gone: %q, error %v", read.ID(), e.Messages.Err())
	}
	var wrong *mortise.DecodeError
	if not.ID() != "" || not.Text() != "" || not.Message().ID != "" || !errors.As(e.Messages.Err(), &wrong) || !strings.Contains(wrong.What, "while the host's call lasts") {
		t.Errorf("message %q, error %v", not.ID(), e.Messages.Err())
	}
	unsent.Read = nil
	e = k.event(t)
	if e.Messages[2].Text() != "" || e.Messages.Err() == nil {
		t.Errorf("messages without a host: error %v", e.Messages.Err())
	}
}

// TestUnsentMessages_lies: an index that is not that of the host's messages is an error, and
// takes no memory for what it says.
//
//nolint:paralleltest // the host is there for the whole module
func TestUnsentMessages_lies(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1 << 31} {
		k := keeping(t, 2)
		k.index = k.index[:mortise.MessageMarkSize] + mark(size, mortise.MarkUser)
		e := k.event(t)
		if got := e.Messages[1].ID(); got != "" || e.Messages.Err() == nil {
			t.Errorf("%d bytes: message %q, error %v", size, got, e.Messages.Err())
		}
	}
}

func TestUnsentMessages_brokenIndex(t *testing.T) {
	t.Parallel()
	for what, index := range map[string]string{
		"half a mark": "1234", "a mark and a half": mark(1, 1) + "1234",
		"too long": strings.Repeat(mark(1<<31, 1), 3),
	} {
		e := new(mortise.Event)
		if err := mortise.Unmarshal(indexOnly(index), e); err == nil || len(e.Messages) > 0 {
			t.Errorf("%s: %d messages, error %v", what, len(e.Messages), err)
		}
	}
	e := new(mortise.Event)
	if err := mortise.Unmarshal(indexOnly(""), e); err != nil || len(e.Messages) > 0 || e.MessagesTotal != 7 {
		t.Errorf("an empty index: %+v, error %v", e, err)
	}
}
