package engine

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Engine compiles modules. It is safe for concurrent use.
type Engine interface {
	Compile(ctx context.Context, src Source) (Program, error)
	Close(ctx context.Context) error
}

// Source is a checked module on its way into an engine.
type Source struct {
	Name   string
	Wasm   []byte
	Parsed *wasm.Module
	// Links are the linked modules, each behind those that it imports from.
	Links  []Linked
	Limits Bounds
	// Config is what the guest reads with config_get.
	Config map[string]string
	// Clock and random give the guest the real ones.
	Clock, Random bool
	// Log is nil when the guest may not log.
	Log    *LogGrant
	Logger *slog.Logger
	// Functions are what the guest may import beyond the engine's own, with the modules of Extism and of this project.
	Functions []HostFunc
	// Mounts are the folders that the guest may use.
	Mounts []Mounted
	// Env is what the host functions share.
	Env *Env
}

// LogGrant lets a guest log.
type LogGrant struct{ Level slog.Leveler }

// Least is the least level that a guest's message needs to be logged.
func (l *LogGrant) Least() slog.Level {
	if l == nil || l.Level == nil {
		return slog.LevelDebug
	}
	return l.Level.Level()
}

// Linked is a checked link.
type Linked struct {
	Name   string
	Wasm   []byte
	Parsed *wasm.Module
}

// Modules are those of a program, the main one last.
func (s Source) Modules() []*wasm.Module {
	out := make([]*wasm.Module, 0, len(s.Links)+1)
	for _, l := range s.Links {
		out = append(out, l.Parsed)
	}
	return append(out, s.Parsed)
}

// ByModule groups the functions by their import modules, those of Extism left out.
func (s Source) ByModule() map[string][]HostFunc {
	out := map[string][]HostFunc{}
	for _, f := range s.Functions {
		if f.Module != ModuleEnv {
			out[f.Module] = append(out[f.Module], f)
		}
	}
	return out
}

// OfEnv are the functions of Extism's module that the host answers.
func (s Source) OfEnv() []HostFunc {
	return slices.DeleteFunc(slices.Clone(s.Functions), func(f HostFunc) bool { return f.Module != ModuleEnv })
}

// Imports reports whether a module imports from another one.
func Imports(m *wasm.Module, module string) bool {
	return slices.ContainsFunc(m.Imports, func(im wasm.Import) bool { return im.Module == module })
}

// Program is a compiled module. It is safe for concurrent use. close comes after
// the last instance has been closed.
type Program interface {
	// Instantiate makes an instance and initialises the guest's runtime. The
	// context bounds both. The error is a *fault when the guest is to blame.
	Instantiate(ctx context.Context, sticky bool) (Instance, error)
	// Metered reports whether fuel is counted, and if not, why: a sentence without its
	// subject.
	Metered() (bool, string)
	Close(ctx context.Context) error
}

// Instance runs one call at a time.
type Instance interface {
	// Call runs an export that takes nothing, for as long as Limits.Timeout and ctx let
	// it, returns its output and fills in the outcome, which was empty. The error is a
	// *fault when the guest broke or was stopped.
	Call(ctx context.Context, t *Target, in *Input, out *Outcome) ([]byte, error)
	// Interrupt ends the call in progress, from another goroutine. The fault of
	// the call is ErrClosed.
	Interrupt()
	Close(ctx context.Context) error
}

// Target is an export that can be called, and its place in Info.Exports.
type Target struct {
	Name  string
	Index int
	// Called is set by the first call.
	Called atomic.Bool
}

// SizeOfParts returns how many bytes the parts of an input are.
func SizeOfParts(parts [][]byte) int {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// Input is what a call gets, in one piece or in parts. It is valid while the call
// runs.
type Input struct {
	whole []byte
	parts [][]byte
	Size  int
}

// Set keeps the parts, but not the list of them, so that a call with one part allocates nothing.
func (in *Input) Set(parts [][]byte, size int) {
	in.Size = size
	if len(parts) == 1 {
		in.whole = parts[0]
		return
	}
	in.parts = slices.Clone(parts)
}

// Drop lets go of the bytes.
func (in *Input) Drop() { *in = Input{} }

// CopyTo puts the input together in a place of its size.
func (in *Input) CopyTo(to []byte) {
	if in.parts == nil {
		copy(to, in.whole)
		return
	}
	for _, part := range in.parts {
		to = to[copy(to, part):]
	}
}

// Bytes is the input in one piece, which is not to be changed.
func (in *Input) Bytes() []byte {
	if in.parts == nil {
		return in.whole
	}
	return bytes.Join(in.parts, nil)
}

// Outcome is what a call left behind. It is valid with an error too, as far as
// it goes.
type Outcome struct {
	// Code and text are what the guest returned and gave to error_set.
	Code uint32
	Text string
	// Spent is why the instance must not be used again, empty when it may.
	Spent Reason
	// Fuel is what the call used, on an engine that meters.
	Fuel int64
	// LogsDropped counts log messages beyond the limit.
	LogsDropped int64
	// Printed counts lines of standard output and error that were not logged for want of the grant.
	Printed int64
}

// Unusual reports that a call without an error is no success without more ado.
func (o *Outcome) Unusual() bool { return o.Spent != "" || o.Code != 0 || o.Text != "" }
