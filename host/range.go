package host

import (
	"context"
	"fmt"
)

// RangeFunc answers a guest that reads more than its input: items from from
// (included) to to (excluded) of whatever the caller keeps, encoded. It runs on
// the goroutine of the call, must be quick, and must cut the range to what there
// is. An error ends the guest, as one of a [Function] does.
type RangeFunc func(from, to uint32) ([]byte, error)

// rangeKey finds a RangeFunc in the context of a call.
type rangeKey struct{}

// WithRange lets the guests that are called with the returned context read more
// than their input, by the import messages_get of "mortise:host/1". What it
// returns is bounded by Limits.InputBytes.
func WithRange(ctx context.Context, f RangeFunc) context.Context {
	return context.WithValue(ctx, rangeKey{}, f)
}

// rangeOf returns the bytes of a range, nil when the caller offers none.
func rangeOf(ctx context.Context, from, to uint32, limit int) ([]byte, *fault) {
	f, ok := ctx.Value(rangeKey{}).(RangeFunc)
	if !ok || f == nil {
		return nil, nil
	}
	data, err := f(from, to)
	if err != nil {
		return nil, &fault{kind: TrapFault, detail: importMessagesGet + ": " + clean(err.Error(), maxDetail), err: foreign{err}}
	}
	if len(data) > limit {
		return nil, &fault{kind: TrapFault, detail: fmt.Sprintf("%s: %d bytes, %d are allowed; ask for fewer", importMessagesGet, len(data), limit)}
	}
	return data, nil
}
