package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/compaction"
)

var _ Store = (*Dir)(nil)

const (
	statePrefix = "state-"
	stateSuffix = ".json"
)

func stateName(thread string, rev uint64) string {
	return path.Join(folder(thread), statePrefix+strconv.FormatUint(rev, 10)+stateSuffix)
}

// revisions lists what there is of a thread's state, and the highest of it.
func (d *Dir) revisions(thread string) (all []uint64, highest uint64, err error) {
	entries, err := fs.ReadDir(d.root.FS(), folder(thread))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		text, named := strings.CutPrefix(e.Name(), statePrefix)
		text, whole := strings.CutSuffix(text, stateSuffix)
		rev, err := strconv.ParseUint(text, 10, 64)
		if !named || !whole || err != nil || rev == 0 {
			continue
		}
		all, highest = append(all, rev), max(highest, rev)
	}
	return all, highest, nil
}

// Load implements compaction.Store.
func (d *Dir) Load(thread string) (compaction.State, uint64, error) {
	s, rev, err := d.load(thread)
	if err != nil || rev != 0 {
		return s, rev, wrap(thread, err)
	}
	// A list that is read while a revision takes the place of another may have neither.
	switch _, err := d.root.Stat(path.Join(folder(thread), lockName)); {
	case errors.Is(err, fs.ErrNotExist):
		return s, 0, nil // nothing was ever changed
	case err != nil:
		return s, 0, wrap(thread, err)
	}
	err = d.alone(thread, func() error {
		s, rev, err = d.load(thread)
		return err
	})
	return s, rev, wrap(thread, err)
}

func (d *Dir) load(thread string) (s compaction.State, rev uint64, err error) {
	for {
		_, rev, err := d.revisions(thread)
		if err != nil || rev == 0 {
			return s, 0, err
		}
		data, err := d.root.ReadFile(stateName(thread, rev))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a newer one came in between
		}
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			return compaction.State{}, 0, fmt.Errorf("%s: %w", stateName(thread, rev), err)
		}
		return s, rev, nil
	}
}

// Swap implements compaction.Store. A revision is a file, which is there whole or not
// at all; the ones before are removed when it is.
func (d *Dir) Swap(thread string, rev uint64, s compaction.State) (next uint64, err error) {
	err = d.alone(thread, func() error {
		next, err = d.swap(thread, rev, s)
		return err
	})
	return next, wrap(thread, err)
}

func (d *Dir) swap(thread string, rev uint64, s compaction.State) (uint64, error) {
	all, highest, err := d.revisions(thread)
	if err != nil {
		return 0, err
	}
	if highest != rev {
		return 0, compaction.ErrConflict
	}
	data, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	next := rev + 1
	temporary := path.Join(folder(thread), "new-"+uuid.NewString())
	if err := d.durable(temporary, data); err != nil {
		return 0, err
	}
	if err := d.root.Rename(temporary, stateName(thread, next)); err != nil {
		return 0, errors.Join(err, d.root.Remove(temporary))
	}
	for _, old := range all {
		_ = d.root.Remove(stateName(thread, old)) // it no longer counts
	}
	return next, d.sync(folder(thread))
}

// durable writes a file and waits until it is on the disk.
func (d *Dir) durable(name string, data []byte) error {
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Record implements compaction.Store.
func (d *Dir) Record(e compaction.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return wrap(e.Thread, d.write(path.Join(folder(e.Thread), eventsName), nil, e))
}

// Events implements [Store]. Those before the newest stay in the file.
func (d *Dir) Events(thread string) ([]compaction.Event, error) {
	name := path.Join(folder(thread), eventsName)
	var out []compaction.Event
	err := d.lines(name, func(n int, line []byte) error {
		var e compaction.Event
		if err := decode(line, &e); err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if out = append(out, e); len(out) == 2*MaxEvents {
			out = append(out[:0], out[MaxEvents:]...)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out[max(0, len(out)-MaxEvents):], wrap(thread, err)
}

func wrap(thread string, err error) error {
	if err == nil || errors.Is(err, compaction.ErrConflict) {
		return err
	}
	return fmt.Errorf("session: thread %.80q: %w", thread, err)
}
