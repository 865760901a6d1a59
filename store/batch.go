package store

import (
	"errors"
	"fmt"
)

// Batch is a change of one thread. Its parts are applied in the order of the fields.
type Batch struct {
	Thread string
	// ID names the batch. One whose ID is among the latest Remembered of its thread was applied before: Apply changes nothing and returns
	// the revision of then. An empty ID is never remembered.
	ID string
	// Base is the revision that the thread must have, 0 for one that does not exist; or AnyRevision.
	Base uint64
	// Drop deletes all cells and logs. A thread that the rest of the batch leaves empty no longer exists.
	Drop   bool
	Delete []Range
	Put    []Cell
	// Trim deletes entries. The numbers of a log continue after that.
	Trim   []Trim
	Append []Entry
	// Notify has topics: see Store.Watch.
	Notify []string
}

// Trim deletes the entries of a log before a number.
type Trim struct {
	Log    string
	Before uint64
}

// Validate returns an [ErrInvalid] for a batch that no store accepts.
func (b *Batch) Validate() error {
	if err := b.validate(); err != nil {
		return fmt.Errorf("%w: thread %.80q: %w", ErrInvalid, b.Thread, err)
	}
	return nil
}

// Size returns about how many bytes it has: those of its values and entries.
func (b *Batch) Size() (n int) {
	for i := range b.Put {
		n += len(b.Put[i].Value)
	}
	for i := range b.Append {
		n += len(b.Append[i].Data)
	}
	return n
}

func (b *Batch) validate() error {
	if b.Thread == "" {
		return errors.New("no thread")
	}
	names := append([]string{b.Thread, b.ID}, b.Notify...)
	for _, r := range b.Delete {
		names = append(names, r.Kind, r.From, r.To)
	}
	for _, t := range b.Trim {
		names = append(names, t.Log)
	}
	put := map[[2]string]bool{}
	for i := range b.Put {
		c := &b.Put[i]
		if id := [2]string{c.Kind, c.Key}; put[id] {
			return fmt.Errorf("cell %.80q of kind %q is put twice", c.Key, c.Kind)
		}
		put[[2]string{c.Kind, c.Key}] = true
		more, err := c.names()
		if err != nil {
			return fmt.Errorf("cell %.80q of kind %q: %w", c.Key, c.Kind, err)
		}
		names = append(names, more...)
	}
	for i := range b.Append {
		e := &b.Append[i]
		if e.Log == "" {
			return fmt.Errorf("entry %d has no log", i)
		}
		if err := fits(e.Data); err != nil {
			return fmt.Errorf("entry of log %.80q: %w", e.Log, err)
		}
		names = append(names, e.Log)
	}
	for _, name := range names {
		if len(name) > MaxKey {
			return fmt.Errorf("name %.80q has %d bytes, at most are %d", name, len(name), MaxKey)
		}
	}
	return nil
}

// names returns the names of a cell and of its index keys.
func (c *Cell) names() ([]string, error) {
	if c.Kind == "" {
		return nil, errors.New("it has no kind")
	}
	names, indexes := []string{c.Kind, c.Key}, map[string]bool{}
	for _, k := range c.Index {
		if k.Name == "" || indexes[k.Name] {
			return nil, fmt.Errorf("index %q is empty or comes twice", k.Name)
		}
		indexes[k.Name] = true
		names = append(names, k.Name, k.Group, k.Key)
	}
	return names, fits(c.Value)
}

func fits(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("it has %d bytes, at most are %d", len(value), MaxValue)
	}
	return nil
}
