package cli

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/session"
)

// keeper writes a thread's log into a session's store as it grows. A nil keeper
// writes nothing.
type keeper struct {
	store  session.Store
	thread string
	// kept is what the store has, at first what it had before.
	kept []abi.Message
	err  error
}

// newKeeper refuses a thread that a folder has already: a replay begins there at its
// beginning. In a store it goes on.
func newKeeper(store session.Store, thread string) (*keeper, error) {
	if store == nil {
		return nil, nil //nolint:nilnil // nobody is to keep anything
	}
	log, err := store.Log(thread)
	if err != nil && !errors.Is(err, session.ErrUnknown) {
		return nil, err
	}
	if _, folder := store.(*session.Dir); folder && err == nil {
		return nil, fmt.Errorf("--session-dir: thread %.80q is there already; name another folder", thread)
	}
	return &keeper{store: store, thread: thread, kept: log}, nil
}

// keep writes what is new. After a failure it writes nothing more.
func (k *keeper) keep(log []abi.Message) {
	if k == nil || k.err != nil || len(log) <= len(k.kept) {
		return
	}
	n := len(k.kept)
	if k.err = k.store.Append(k.thread, log[n:]...); k.err == nil {
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
	return k.store.Replace(k.thread, changed...)
}
