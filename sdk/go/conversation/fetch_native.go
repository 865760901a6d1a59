//go:build !wasip1

package conversation

import mortise "github.com/mortise-dev/mortise/sdk/go"

var provided []mortise.Message

// Provide sets what Get reads in a native test, and returns a function that takes
// it back. It does not exist in a guest.
func Provide(messages []mortise.Message) (restore func()) {
	before := provided
	provided = messages
	return func() { provided = before }
}

func fetch(from, to int) string {
	last := min(to, len(provided))
	first := min(from, last)
	if len(provided) == 0 {
		return ""
	}
	data, err := mortise.Marshal(&mortise.Event{
		Messages: mortise.MessagesOf(provided[first:last]...), MessagesFrom: first, MessagesTotal: len(provided),
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}
