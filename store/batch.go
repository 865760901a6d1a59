package store

import "fmt"

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

func (b *Batch) validate() error {
	if b.Thread == "" {
		return fmt.Errorf("no thread")
	}
	names := []string{b.Thread, b.ID}
	for _, r := range b.Delete {
		names = append(names, r.Kind, r.From, r.To)
	}
	put := map[[2]string]bool{}
	for i := range b.Put {
		c := &b.Put[i]
		if c.Kind == "" {
			return fmt.Errorf("cell %.80q has no kind", c.Key)
		}
		if id := [2]string{c.Kind, c.Key}; put[id] {
			return fmt.Errorf("cell %.80q of kind %q is put twice", c.Key, c.Kind)
		} else {
			put[id] = true
		}
		if len(c.Value) > MaxValue {
			return fmt.Errorf("cell %.80q of kind %q has %d bytes, at most are %d", c.Key, c.Kind, len(c.Value), MaxValue)
		}
		names = append(names, c.Kind, c.Key)
		indexes := map[string]bool{}
		for _, k := range c.Index {
			if k.Name == "" || indexes[k.Name] {
				return fmt.Errorf("cell %.80q of kind %q: index %q is empty or comes twice", c.Key, c.Kind, k.Name)
			}
			indexes[k.Name] = true
			names = append(names, k.Name, k.Group, k.Key)
		}
	}
	for _, t := range b.Trim {
		names = append(names, t.Log)
	}
	for i := range b.Append {
		e := &b.Append[i]
		if e.Log == "" {
			return fmt.Errorf("entry %d has no log", i)
		}
		if len(e.Data) > MaxValue {
			return fmt.Errorf("entry of log %.80q has %d bytes, at most are %d", e.Log, len(e.Data), MaxValue)
		}
		names = append(names, e.Log)
	}
	for _, name := range append(names, b.Notify...) {
		if len(name) > MaxKey {
			return fmt.Errorf("name %.80q has %d bytes, at most are %d", name, len(name), MaxKey)
		}
	}
	return nil
}
