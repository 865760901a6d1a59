package messages

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Grant lets guests read more than their input, as far as the context of a call offers it: by messages_get
// what [WithRange] gives, by messages_read the items of [With].
type Grant struct{}

// Names of the imports.
const (
	importMessagesGet  = "messages_get"
	importMessagesRead = "messages_read"
)

// Capability implements host.Capability.
func (Grant) Capability() string { return "messages" }

// Checked implements host.Capability.
func (m Grant) Checked(string) (engine.Capability, error) { return m, nil }

// Open implements host.Capability.
func (Grant) Open(env *engine.Env) (*engine.Opened, error) {
	o := messagesOpened{env.InputBytes}
	return &engine.Opened{Functions: []engine.HostFunc{
		engine.Function(importMessagesGet, o.get), engine.Function(importMessagesRead, o.read),
	}}, nil
}

// messagesOpened is an open grant.
type messagesOpened struct {
	// limit is how many bytes a range may have.
	limit int
}

// get puts a range of what the caller keeps into a new block.
func (o messagesOpened) get(g engine.Guest, stack []uint64) {
	from, to := uint32(stack[0]), uint32(stack[1]) //nolint:gosec // two i32 for the host
	stack[0] = 0
	ctx := g.Caller()
	if ctx == nil {
		return
	}
	data, bad := rangeOf(ctx, from, to, o.limit)
	if bad != nil {
		g.Fail(bad)
	}
	g.Spend(len(data)/64 + 1)
	if len(data) > 0 {
		stack[0] = g.Store(importMessagesGet, data)
	}
}

// read copies items of the call to the guest's memory.
func (messagesOpened) read(g engine.Guest, stack []uint64) {
	from, to, ptr, room := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3]) //nolint:gosec // four i32 for the host
	var items Items
	if ctx := g.Caller(); ctx != nil {
		items = Of(ctx)
	}
	n, fits := sizeOf(items, from, to, room)
	stack[0] = uint64(n) //nolint:gosec // -1 is one, too
	g.Spend(int(max(n, 0))/64 + 1)
	if fits {
		items.Copy(g.Slice(importMessagesRead, ptr, int(n)), from, to)
	}
}

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
func rangeOf(ctx context.Context, from, to uint32, limit int) ([]byte, *engine.Fault) {
	f, ok := ctx.Value(rangeKey{}).(RangeFunc)
	if !ok || f == nil {
		return nil, nil
	}
	data, err := f(from, to)
	if err != nil {
		return nil, &engine.Fault{Kind: engine.TrapFault, Detail: importMessagesGet + ": " + engine.Clean(err.Error(), engine.MaxDetail), Err: engine.Foreign{Cause: err}}
	}
	if len(data) > limit {
		return nil, &engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("%s: %d bytes, %d are allowed; ask for fewer", importMessagesGet, len(data), limit)}
	}
	return data, nil
}
