package session

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"
)

const (
	lockName  = "lock"
	lockTime  = 5 * time.Second
	lockPause = 2 * time.Millisecond
)

// errHeld is a lock that somebody else has.
var errHeld = errors.New("held")

// alone runs change while no other process, and nobody else in this one, changes the
// thread's state. The lock is on an open file, so the system lets go of it when the
// process ends, however it does.
func (d *Dir) alone(thread string, change func() error) error {
	name := path.Join(folder(thread), lockName)
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it holds nothing but the lock
	for deadline := time.Now().Add(lockTime); ; {
		err := lock(f)
		if err == nil {
			return change()
		}
		if !errors.Is(err, errHeld) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: another process holds it for more than %s; end that one, or wait for it", name, lockTime)
		}
		<-time.After(lockPause)
	}
}
