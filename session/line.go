package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// Line is an entry of a log as stores keep it, in JSON: a message that comes next, or one
// that stands in the place of the message with its id.
type Line struct {
	Message *abi.Message `json:"message,omitempty"`
	Replace *abi.Message `json:"replace,omitempty"`
}

// Log is a log that is put together from its lines. The zero Log is empty.
type Log struct {
	messages []abi.Message
	place    map[string]int
}

// Add adds a line, in JSON.
func (l *Log) Add(line []byte) error {
	var e Line
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	switch {
	case e.Message != nil:
		if l.place == nil {
			l.place = make(map[string]int)
		}
		l.place[e.Message.ID] = len(l.messages)
		l.messages = append(l.messages, *e.Message)
	case e.Replace != nil:
		i, ok := l.place[e.Replace.ID]
		if !ok {
			return fmt.Errorf("replaces %.80q, which does not come before", e.Replace.ID)
		}
		l.messages[i] = *e.Replace
	default:
		return errors.New("holds no message")
	}
	return nil
}

// Messages are those that were added, as far as nothing replaced them.
func (l *Log) Messages() []abi.Message { return l.messages }

// Has says whether there is a message with an id.
func (l *Log) Has(id string) bool {
	_, ok := l.place[id]
	return ok
}

// Check says what is wrong with what [Store.Append] is given, for those who implement it.
func Check(thread string, messages []abi.Message) error {
	if !utf8.ValidString(thread) {
		return fmt.Errorf("session: thread %.80q: the id is not valid UTF-8; name the thread otherwise", thread)
	}
	for i := range messages {
		if messages[i].ID == "" {
			return fmt.Errorf("session: thread %.80q: message %d has no id", thread, i)
		}
	}
	return nil
}

// CheckReplace says what is wrong with what [Store.Replace] is given: has says whether the
// log has a message with an id.
func CheckReplace(thread string, messages []abi.Message, has func(id string) bool) error {
	for i := range messages {
		if !has(messages[i].ID) {
			return fmt.Errorf("session: thread %.80q: there is no message %.80q to replace", thread, messages[i].ID)
		}
	}
	return nil
}
