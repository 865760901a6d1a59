package cli

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/session"
)

// keeper writes a thread's log into a session's folder as it grows. A nil keeper
// writes nothing.
type keeper struct {
	dir    *session.Dir
	thread string
	kept   []abi.Message
	err    error
}

// newKeeper refuses a thread that the folder has already: a replay begins at its
// beginning.
func newKeeper(dir *session.Dir, thread string) (*keeper, error) {
	if dir == nil {
		return nil, nil //nolint:nilnil // nobody is to keep anything
	}
	switch _, err := dir.Log(thread); {
	case err == nil:
		return nil, fmt.Errorf("--session-dir: thread %.80q is there already; name another folder", thread)
	case !errors.Is(err, session.ErrUnknown):
		return nil, err
	}
	return &keeper{dir: dir, thread: thread}, nil
}

// keep writes what is new. After a failure it writes nothing more.
func (k *keeper) keep(log []abi.Message) {
	if k == nil || k.err != nil || len(log) <= len(k.kept) {
		return
	}
	n := len(k.kept)
	if k.err = k.dir.Append(k.thread, log[n:]...); k.err == nil {
		k.kept = append(k.kept, log[n:]...)
	}
}

// finish writes what is new, and messages that plugins have changed since they were
// written.
func (k *keeper) finish(log []abi.Message) error {
	if k == nil {
		return nil
	}
	k.keep(log)
	if k.err != nil {
		return k.err
	}
	var changed []abi.Message
	for i := range log {
		if !reflect.DeepEqual(k.kept[i], log[i]) {
			changed = append(changed, log[i])
		}
	}
	return k.dir.Replace(k.thread, changed...)
}
