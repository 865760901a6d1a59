package messages

import (
	"context"
)

// Items are pieces of bytes, numbered from 0, of which a guest reads what it wants with the import messages_read of
// "mortise:host/1". They are asked on the goroutine of the call, for as long as it runs, must be quick and must not
// change.
type Items interface {
	// Size returns how many bytes the items from from (included) to to (excluded) are. It
	// returns false when not all of them are there.
	Size(from, to uint32) (n int, ok bool)
	// Copy copies them, one after the other, to a place of that size.
	Copy(dst []byte, from, to uint32)
}

// itemsKey finds Items in the context of a call.
type itemsKey struct{}

// With lets the guests that are called with the returned context read items.
func With(ctx context.Context, items Items) context.Context {
	return context.WithValue(ctx, itemsKey{}, items)
}

// Of returns the items of a call, nil when the caller offers none.
func Of(ctx context.Context) Items {
	items, _ := ctx.Value(itemsKey{}).(Items)
	return items
}

// sizeOf returns how many bytes a range of items is, -1 when not all of it is there, and
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
