// Package conversation lets a hook read more messages than its view gave it.
//
// A hook that asks for few messages is cheap to call. When it finds that it needs
// more, [Get] fetches a range from the host, and only that range is encoded and
// copied. Only a guest that imports this package has the import.
//
// # Concurrency
//
// A guest runs one call at a time, and so does this package.
//
// # Errors
//
// [Get] returns an error when the host's answer cannot be decoded. Ranges beyond
// the conversation are cut, which is no error.
package conversation

import mortise "github.com/mortise-dev/mortise/sdk/go"

// Get returns the messages from index from (included) to to (excluded) of what
// the model sees, and how many there are in all. It works inside of on_phase;
// elsewhere there are none. In a native test it reads what Provide was given.
// Like those of the event they are read when they are asked for.
func Get(from, to int) (messages mortise.Messages, total int, err error) {
	if from < 0 || to <= from {
		return nil, 0, nil
	}
	data := fetch(from, to)
	if data == "" {
		return nil, 0, nil
	}
	var event mortise.Event
	if err := mortise.UnmarshalString(data, &event); err != nil {
		return nil, 0, err
	}
	return event.Messages, event.MessagesTotal, nil
}
