package host

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// engine compiles modules. It is safe for concurrent use.
type engine interface {
	compile(ctx context.Context, src source) (program, error)
	close(ctx context.Context) error
}

// source is a checked module on its way into an engine.
type source struct {
	name   string
	wasm   []byte
	parsed *wasm.Module
	// links are the linked modules, each behind those that it imports from.
	links  []linked
	limits Limits
	grants Grants
	logger *slog.Logger
	// caps are the open grants, shared by all instances.
	caps *capabilities
}

// program is a compiled module. It is safe for concurrent use. close comes after
// the last instance has been closed.
type program interface {
	// instantiate makes an instance and initialises the guest's runtime. The
	// context bounds both. The error is a *fault when the guest is to blame.
	instantiate(ctx context.Context, sticky bool) (instance, error)
	// metered tells whether fuel is counted, and if not, why: a sentence without its
	// subject.
	metered() (bool, string)
	close(ctx context.Context) error
}

// instance runs one call at a time.
type instance interface {
	// call runs an export that takes nothing, for as long as Limits.Timeout and ctx let
	// it, returns its output and fills in the outcome, which was empty. The error is a
	// *fault when the guest broke or was stopped.
	call(ctx context.Context, t *target, in *input, out *outcome) ([]byte, error)
	// interrupt ends the call in progress, from another goroutine. The fault of
	// the call is ErrClosed.
	interrupt()
	close(ctx context.Context) error
}

// target is an export that can be called, and its place in Info.Exports.
type target struct {
	name  string
	index int
	// called is set by the first call.
	called atomic.Bool
}

// sizeOfParts returns how many bytes the parts of an input are.
func sizeOfParts(parts [][]byte) int {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// input is what a call gets, in one piece or in parts. It is valid while the call
// runs.
type input struct {
	whole []byte
	parts [][]byte
	size  int
}

// set keeps the parts, but not the list of them, so that a call with one part allocates nothing.
func (in *input) set(parts [][]byte, size int) {
	in.size = size
	if len(parts) == 1 {
		in.whole = parts[0]
		return
	}
	in.parts = slices.Clone(parts)
}

func (in *input) drop() { *in = input{} }

// copyTo puts the input together in a place of its size.
func (in *input) copyTo(to []byte) {
	if in.parts == nil {
		copy(to, in.whole)
		return
	}
	for _, part := range in.parts {
		to = to[copy(to, part):]
	}
}

// bytes is the input in one piece, which is not to be changed.
func (in *input) bytes() []byte {
	if in.parts == nil {
		return in.whole
	}
	return bytes.Join(in.parts, nil)
}

// outcome is what a call left behind. It is valid beside an error too, as far as
// it goes.
type outcome struct {
	// code and text are what the guest returned and gave to error_set.
	code uint32
	text string
	// spent is why the instance must not be used again, empty when it may.
	spent Replacement
	// fuel is what the call used, on an engine that meters.
	fuel int64
	// logsDropped counts log messages beyond the limit.
	logsDropped int64
	// printed counts lines of standard output and error that were not logged for want of the grant.
	printed int64
}

// unusual tells that a call without an error is no success without more ado.
func (o *outcome) unusual() bool { return o.spent != "" || o.code != 0 || o.text != "" }

// fault is a trap before it knows its module and export.
type fault struct {
	kind   TrapKind
	detail string
	code   uint32
	err    error
	// late is the host call in which the guest was when it had to end, if that came back late.
	late *overrun
}

func (f *fault) Error() string { return string(f.kind) + ": " + f.detail }

func (f *fault) Unwrap() error { return f.err }
