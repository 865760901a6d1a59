package session

import (
	"errors"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// ErrUnknown is a thread that has no log.
var ErrUnknown = errors.New("no log is kept of it")

// Bounds of what a [Store] keeps.
const (
	// MaxMessage is how large a message may be that every store takes, in bytes of JSON.
	// A larger one may be refused.
	MaxMessage = 8 << 20
	// MaxEvents is how many events of a thread come back at most, the newest ones.
	MaxEvents = 5000
)

// Store keeps threads: the messages of each in a log that only grows, and what became
// of its compactions. Threads know nothing of each other; a thread's id is any valid
// UTF-8, and the state and the events of one take any bytes as an id.
//
// Messages and events come back as their JSON can tell them. A Store is safe for
// concurrent use. Several handles, also of several processes, may have the same threads
// open: of two that swap the same revision, one wins, and each may write the logs of threads
// that no other writes. Each call bounds its own time, to seconds. What a call has
// kept survives the end of the process, however it comes; a state that was swapped in survives that of
// the machine.
type Store interface {
	compaction.Store

	// Append adds messages to a thread's log, in their order and next to each other. The log
	// begins with the first of them: no messages make no log. Each has an id, which the
	// caller keeps unique. What a call keeps that failed is a beginning of what it was given.
	Append(thread string, messages ...abi.Message) error
	// Replace puts messages in the place of those with their ids. It fails and changes nothing
	// when the log lacks one of them; a thread without a log is [ErrUnknown].
	Replace(thread string, messages ...abi.Message) error
	// Log reads a thread's messages. It fails with [ErrUnknown] when there is no log.
	Log(thread string) ([]abi.Message, error)
	// Threads lists the threads that have a log, in order.
	Threads() ([]string, error)
	// Events reads what was recorded of a thread, oldest first: the newest [MaxEvents].
	// The store may forget those before.
	Events(thread string) ([]compaction.Event, error)
	// Close lets go of the handle, after which calls fail. Closing again does nothing.
	Close() error
}
