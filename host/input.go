package host

import (
	"context"
	"errors"
)

// Input is what a call gets.
type Input struct {
	// Parts are the input, one behind the other. They are put together where the guest
	// wants them, and not before.
	Parts [][]byte
	// Items are what the guest may read beside it. Nil are none.
	Items Items
}

// Items are pieces of bytes, numbered from 0, of which a guest reads what it wants with
// the import messages_read of "mortise:host/1". They are asked on the goroutine of the
// call, for as long as it runs, must be quick and must not change.
type Items interface {
	// Size is how many bytes the items from from (included) to to (excluded) are. It
	// returns false when not all of them are there.
	Size(from, to uint32) (n int, ok bool)
	// Copy copies them, one behind the other, to a place of that size.
	Copy(dst []byte, from, to uint32)
}

// size is how many bytes the parts are.
func (in *Input) size() int {
	n := 0
	for _, part := range in.Parts {
		n += len(part)
	}
	return n
}

// CallInput is [Module.Call] with an input in parts, and items beside it.
func (m *Module) CallInput(ctx context.Context, export string, in Input) ([]byte, error) {
	for {
		out, err := m.Current().CallInput(ctx, export, in)
		if err == nil || !errors.Is(err, ErrRetired) {
			return out, err
		}
	}
}

// CallInput is [Module.CallInput] on this generation. Once another one has taken its
// place it fails with [ErrRetired].
func (g *Generation) CallInput(ctx context.Context, export string, in Input) ([]byte, error) {
	size := in.size()
	s, t, err := g.begin(ctx, export, size)
	if err != nil {
		return nil, err
	}
	s.in.parts, s.in.size, s.in.items = in.Parts, size, in.Items
	output, err := g.guarded(ctx, s, t)
	if err != nil || g.watch.Load() != nil {
		g.count(ctx, err)
	}
	return output, err
}

// CallInput is [Session.Call] with an input in parts, and items beside it.
func (s *Session) CallInput(ctx context.Context, export string, in Input) ([]byte, error) {
	return s.call(ctx, export, nil, in)
}

// CallParts is [Module.CallInput] without items.
func (m *Module) CallParts(ctx context.Context, export string, parts [][]byte) ([]byte, error) {
	return m.CallInput(ctx, export, Input{Parts: parts})
}

// CallParts is [Generation.CallInput] without items.
func (g *Generation) CallParts(ctx context.Context, export string, parts [][]byte) ([]byte, error) {
	return g.CallInput(ctx, export, Input{Parts: parts})
}

// sizeOf is how many bytes a range of items is, -1 when not all of it is there, and
// whether it fits in a room.
func sizeOf(items Items, from, to, room uint32) (n int64, fits bool) {
	if items == nil {
		return -1, false
	}
	size, ok := items.Size(from, to)
	if !ok || size < 0 {
		return -1, false
	}
	return int64(size), int64(size) <= int64(room)
}
