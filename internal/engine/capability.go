package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Capability is what an operator grants a module beyond computing. The packages below host/capability have them.
type Capability interface {
	// Capability returns the name of the grant, such as "kv".
	Capability() string
	// Checked returns a copy with its zero fields filled in that shares nothing which the caller may change, for a
	// module of that name. The error names the field that is wrong.
	Checked(module string) (Capability, error)
	// Open makes what the guests of a loaded module use. It is called once for each generation.
	Open(env *Env) (*Opened, error)
}

// Opened is an open grant, shared by the instances of a generation.
type Opened struct {
	Functions []HostFunc
	Mounts    []Mounted
	Log       *LogGrant
	// Blocking means that the guest can reach code of the embedder.
	Blocking bool
	// Close comes after the last instance was closed. Nil is fine.
	Close func() error
}

// Env is what the grants of a generation share.
type Env struct {
	Module string
	Logger *slog.Logger
	// InputBytes bounds what a capability hands to the guest at once.
	InputBytes int
	// Use counts for the whole module, whatever its generation.
	Use *Usage
}

// Usage counts what the guests of a module did with their grants, whatever its generation, and keeps what a grant
// needs for as long. It is safe for concurrent use. The zero value is ready.
type Usage struct {
	Denied atomic.Int64

	mu     sync.Mutex
	counts map[string]func() int64
	kept   map[any]any
}

// Counter returns the counter of a name, the same one each time.
func (u *Usage) Counter(name string) *atomic.Int64 {
	return Keep(u, name, func() *atomic.Int64 {
		n := new(atomic.Int64)
		u.Count(name, n.Load)
		return n
	})
}

// Count makes a number of a grant one of the statistics. The caller holds the lock, as the function given to keep does.
func (u *Usage) Count(name string, read func() int64) {
	if u.counts == nil {
		u.counts = map[string]func() int64{}
	}
	u.counts[name] = read
}

// All returns the numbers that are not zero.
func (u *Usage) All() map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string]int64{}
	for name, read := range u.counts {
		if n := read(); n != 0 {
			out[name] = n
		}
	}
	return out
}

// Keep returns what is kept for a module under a key, and makes it the first time.
func Keep[T any](u *Usage, key any, create func() T) T {
	u.mu.Lock()
	defer u.mu.Unlock()
	if there, ok := u.kept[key].(T); ok {
		return there
	}
	if u.kept == nil {
		u.kept = map[any]any{}
	}
	made := create()
	u.kept[key] = made
	return made
}

// insideKey marks the context that code of the embedder gets from a guest of a
// module, of which there is one usage.
type insideKey struct{ use *Usage }

// Mark marks a context that code of the embedder gets.
func (u *Usage) Mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, insideKey{u}, true)
}

// Inside reports whether ctx comes from a guest of the module.
func (u *Usage) Inside(ctx context.Context) bool { return ctx.Value(insideKey{u}) != nil }

// Guest is a call in progress, as a host function sees it. What is outside of memory ends the guest.
type Guest interface {
	// Block returns the bytes at an offset of the kernel, until the guest continues or
	// the next store.
	Block(name string, offset uint64) []byte
	// Store puts bytes into a new block and returns its offset.
	Store(name string, data []byte) uint64
	// Slice returns a part of the guest's own memory.
	Slice(name string, ptr uint32, n int) []byte
	// Caller returns the context of the call without preparing for work that may block, nil when no call is in
	// progress.
	Caller() context.Context
	// Enter comes before work that may block. Its context ends with the call. It ends
	// the guest when no call is in progress.
	Enter(name string) (context.Context, *CallState)
	// Leave comes after such work. It ends the guest when its time is up.
	Leave()
	// Fail ends the guest. forgive takes that back for a fault that was recovered.
	Fail(f *Fault)
	Forgive()
	// Spend takes fuel, where fuel is counted.
	Spend(units int)
}

// CallState is what capabilities remember within one call.
type CallState struct {
	Env *Env
	// Text is that of the last negative code.
	Text string
	kept map[any]any
}

// InCall returns what is kept for the call under a key, and makes it the first time.
func InCall[T any](s *CallState, key any) *T {
	if there, ok := s.kept[key].(*T); ok {
		return there
	}
	if s.kept == nil {
		s.kept = map[any]any{}
	}
	made := new(T)
	s.kept[key] = made
	return made
}

// Refuse remembers why, and returns the code for the guest.
func (s *CallState) Refuse(code ErrorCode, text string) uint64 {
	switch code {
	case CodeDenied, CodeQuota, CodeTooLarge:
		s.Env.Use.Denied.Add(1)
	default:
	}
	s.Text = code.String() + ": " + text
	return uint64(int64(code)) //nolint:gosec // a negative i64 for the guest
}

// Failed words an error of the embedder's code for the guest. The guest gets
// nothing of the error's text, which may hold what is none of its business.
func (s *CallState) Failed(ctx context.Context, what string, err error) uint64 {
	switch {
	case errors.Is(err, ErrQuota):
		return s.Refuse(CodeQuota, what+": the quota is used up")
	case errors.Is(err, context.DeadlineExceeded):
		return s.Refuse(CodeTimeout, what+": it took too long")
	}
	s.Env.Logger.WarnContext(ctx, "capability failed", "module", s.Env.Module, "capability", what,
		"error", Clean(err.Error(), MaxDetail))
	return s.Refuse(CodeFailed, what+": it did not work")
}

// Guard runs code of the embedder and makes an error of a panic.
func Guard(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %s", Clean(fmt.Sprint(r), MaxDetail))
		}
	}()
	return run()
}

// EmptyBlock is the offset for no bytes where 0 means something
// else: the kernels know no block there, so its length is 0.
const EmptyBlock = 1

// Optional copies a block; offset 0 is none.
func Optional(g Guest, name string, offset uint64) string {
	if offset == 0 || offset == EmptyBlock {
		return ""
	}
	return string(g.Block(name, offset))
}

// Half is a code as an i32 of the guest.
func Half(code uint64) uint64 { return code & 0xffffffff }

// Field is a number of a grant with its name.
type Field struct {
	Name  string
	Value int64
}

// Negative names the first field that is below zero.
func Negative(fields ...Field) error {
	for _, f := range fields {
		if f.Value < 0 {
			return fmt.Errorf("%s %d is negative; use 0 for the default", f.Name, f.Value)
		}
	}
	return nil
}

// Foreign is an error of an embedder's code, without what a host reports of the
// module that is called: a caller that sees ErrRetired calls again.
type Foreign struct{ Cause error } //nolint:errname // it is no error of its own, but where one comes from

// Error implements error.
func (f Foreign) Error() string { return f.Cause.Error() }

// ErrRetired means that another generation replaced the one that was called.
var ErrRetired = errors.New("generation retired")

// Is finds what errors.Is finds in the error.
func (f Foreign) Is(target error) bool {
	return target != ErrRetired && target != ErrClosed && errors.Is(f.Cause, target)
}

// As finds what errors.As finds in the error.
func (f Foreign) As(target any) bool { return errors.As(f.Cause, target) }
