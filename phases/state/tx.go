package state

import (
	"fmt"
	"maps"

	"github.com/mortise-dev/mortise/abi"
)

// Tx is a commit in the making: updates on top of a snapshot. Updates are staged
// first, and become part of it together or not at all.
type Tx struct {
	base    Snapshot
	updates []txUpdate
	values  map[*Key]any // what the updates come to
	staged  map[*Key]any
	mark    int // updates before it are accepted
}

type txUpdate struct {
	key     *Key
	op      abi.Op
	operand any
}

// Begin starts a commit on the state as it is now.
func (s *Store) Begin() *Tx { return &Tx{base: s.Snapshot()} }

// Base is the snapshot on which the commit stands.
func (t *Tx) Base() Snapshot { return t.base }

// Load returns the value of a key as the updates so far leave it.
func (t *Tx) Load(k *Key) (any, bool) {
	if v, ok := t.staged[k]; ok {
		return v, true
	}
	if v, ok := t.values[k]; ok {
		return v, true
	}
	return t.base.Load(k)
}

// Update stages an update. The operand must be a copy made by [Clone].
func (t *Tx) Update(k *Key, op abi.Op, operand any) error {
	if err := k.Takes(op); err != nil {
		return err
	}
	old, ok := t.Load(k)
	value, err := k.apply(old, op, operand)
	if err != nil {
		return err
	}
	if !ok && value == nil && op == abi.OpRemove {
		return nil
	}
	if t.staged == nil {
		t.staged = make(map[*Key]any)
	}
	t.staged[k] = value
	t.updates = append(t.updates, txUpdate{key: k, op: op, operand: operand})
	return nil
}

// Accept makes what is staged part of the commit.
func (t *Tx) Accept() {
	t.mark = len(t.updates)
	if len(t.staged) == 0 {
		return
	}
	if t.values == nil {
		t.values = make(map[*Key]any, len(t.staged))
	}
	maps.Copy(t.values, t.staged)
	clear(t.staged)
}

// Discard forgets what is staged.
func (t *Tx) Discard() {
	clear(t.updates[t.mark:])
	t.updates = t.updates[:t.mark]
	clear(t.staged)
}

// Empty reports whether there is nothing to commit.
func (t *Tx) Empty() bool { return t.mark == 0 }

// Batch returns the accepted updates, for a later commit on the same base.
func (t *Tx) Batch() Batch {
	revision := t.base.Revision()
	b := Batch{Base: &revision}
	for _, u := range t.updates[:t.mark] {
		b.Updates = append(b.Updates, Update{Key: u.key.Name, Op: u.op, Value: u.operand})
	}
	return b
}

// settle returns the values to commit on the current version. A key that was
// changed meanwhile is computed again if all updates of it are shared, and is a
// conflict else.
func (t *Tx) settle(now *Snapshot) (map[*Key]any, error) {
	values, copied := t.values, false
	for k := range t.values {
		e := now.values[k.Name]
		if e.changed <= t.base.Revision() {
			continue
		}
		if !copied {
			values, copied = maps.Clone(values), true
		}
		value, err := t.again(k, e, now.revision)
		if err != nil {
			return nil, err
		}
		values[k] = value
	}
	return values, nil
}

func (t *Tx) again(k *Key, e entry, revision uint64) (any, error) {
	value := e.value
	if e.raw {
		value = nil
	}
	for _, u := range t.updates[:t.mark] {
		if u.key != k {
			continue
		}
		if !k.Shared(u.op) {
			return nil, fmt.Errorf("state: key %q: %w: expected %d, actual %d", k.Name, ErrConflict, t.base.Revision(), revision)
		}
		var err error
		if value, err = k.apply(value, u.op, u.operand); err != nil {
			return nil, fmt.Errorf("state: key %q: %w", k.Name, err)
		}
	}
	return value, nil
}
