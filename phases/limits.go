package phases

import (
	"cmp"
	"fmt"
	"reflect"
	"time"
)

// Limits bounds what a hook may do. Zero fields mean the default.
type Limits struct {
	// Updates and Effects in one reply, 128 and 1024.
	Updates int
	Effects int
	// AppendedMessages in one reply, 32.
	AppendedMessages int
	// ReplyBytes is the size of everything in one reply, 8 MiB. MessageBytes is
	// that of the content of one message, 1 MiB. Sizes are those of the text and
	// keys, plus a little for each value.
	ReplyBytes   int
	MessageBytes int
	// StateValueBytes is the size of one state value, 256 KiB.
	StateValueBytes int
	// TextBytes is the length of one reason, note, code, key or name, 4 KiB.
	TextBytes int
	// Abandoned calls of one plugin that may still be running, 8. At that number
	// its hooks are not called, and fail, until one of them returns.
	Abandoned int
	// QuarantineAfter so many failures in a row, 3, a hook whose policy is
	// quarantine is skipped for QuarantineBackOff, 30 s. Each further failure
	// doubles that, up to QuarantineMax, 30 min.
	QuarantineAfter   int
	QuarantineBackOff time.Duration
	QuarantineMax     time.Duration
	// Actions in one reply, 32; PendingActions may wait in a run, 256.
	Actions        int
	PendingActions int
	// ActionBytes is the size of the payload of one action or custom effect, 64 KiB.
	ActionBytes int
	// Rounds of actions that one phase may take until no more are due, 16.
	Rounds int
	// Notifications of plugins may wait for a thread, 64. The payload of one has at most
	// ActionBytes.
	Notifications int
	// Calls in an answer that replaces the model's, 64.
	Calls int
	// DeadLetters are kept for a thread, 64. Older ones are forgotten and counted.
	DeadLetters int
}

func (l *Limits) setDefaults() {
	l.Updates = cmp.Or(l.Updates, 128)
	l.Effects = cmp.Or(l.Effects, 1024)
	l.AppendedMessages = cmp.Or(l.AppendedMessages, 32)
	l.ReplyBytes = cmp.Or(l.ReplyBytes, 8<<20)
	l.MessageBytes = cmp.Or(l.MessageBytes, 1<<20)
	l.StateValueBytes = cmp.Or(l.StateValueBytes, 256<<10)
	l.TextBytes = cmp.Or(l.TextBytes, 4<<10)
	l.Abandoned = cmp.Or(l.Abandoned, 8)
	l.QuarantineAfter = cmp.Or(l.QuarantineAfter, 3)
	l.QuarantineBackOff = cmp.Or(l.QuarantineBackOff, 30*time.Second)
	l.QuarantineMax = cmp.Or(l.QuarantineMax, 30*time.Minute)
	l.Actions = cmp.Or(l.Actions, 32)
	l.PendingActions = cmp.Or(l.PendingActions, 256)
	l.ActionBytes = cmp.Or(l.ActionBytes, 64<<10)
	l.Rounds = cmp.Or(l.Rounds, 16)
	l.Notifications = cmp.Or(l.Notifications, 64)
	l.Calls = cmp.Or(l.Calls, 64)
	l.DeadLetters = cmp.Or(l.DeadLetters, 64)
}

func (l *Limits) validate() error {
	for field, value := range reflect.ValueOf(l).Elem().Fields() {
		if n := value.Int(); n < 0 {
			return fmt.Errorf("phases: Config.Limits.%s is %d, must not be negative", field.Name, n)
		}
	}
	return nil
}
