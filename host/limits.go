package host

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// Limits bound what a module may use. A zero field takes the default, first
// that of [Config], then that of this package. There is no way to say "no limit".
type Limits struct {
	// MemoryPages bounds each linear memory, in pages of 64 KiB. An instance has
	// two: its own and that of the Extism kernel, which holds input and output.
	// Default 1024, which is 64 MiB: a guest written in Go starts with 5 MiB and
	// lets its heap double before it collects, so 16 MiB are not enough for
	// megabytes of messages, while two instances at their worst still fit in
	// 256 MiB.
	MemoryPages int
	// InputBytes bounds the input of a call. Default 8 MiB, or a quarter of
	// MemoryPages if that is less; never more than half of MemoryPages.
	InputBytes int
	// OutputBytes bounds the output of a call. Default as InputBytes.
	OutputBytes int
	// Timeout bounds the time that a guest runs in one call. Waiting for a free
	// instance does not count. The caller's deadline holds too. Default 2 s.
	Timeout time.Duration
	// Fuel bounds what a guest executes in one call, and in its initialisation, in
	// units of the meter: about one for each instruction, and one for each 64 bytes
	// that the host moves for the guest. The count is the same
	// on every machine. Default 100,000,000,000, with which a guest in Go computes
	// for some five seconds, so that Timeout comes first when neither is set.
	// The Extism engine does not count, and neither does a module whose [Info].Metered is false.
	Fuel int64
	// InitTimeout bounds the time to make an instance: its start function and
	// its runtime's initialisation. Default 5 s.
	InitTimeout time.Duration
	// CompileTimeout bounds the time to compile the module when it is loaded. In this process it is
	// looked at between functions, and how much work one of them may be is bounded, too; with [Config].Compile
	// the child is ended. A
	// guest in Go takes 1 to 3 s of a quiet machine. Default 2 minutes.
	CompileTimeout time.Duration
	// Instances bounds how many calls of the module run at once. Default
	// GOMAXPROCS, at least 2; at most 65,536, since each place takes memory at once.
	Instances int
	// IdleTimeout is how long an instance lies unused before it is closed; it may
	// take up to twice as long. Default 5 minutes.
	IdleTimeout time.Duration
	// Sessions bounds the sessions that are open at once. Default 16.
	Sessions int
	// StderrBytes is how much of what a guest writes to stderr in one call is
	// kept for a [TrapError]. Default 4 KiB.
	StderrBytes int
	// LogBytes is how much a guest may log in one call; the rest is dropped and
	// counted. A message takes its text as it is written, escapes included, and 64
	// bytes. Default 64 KiB, which is a thousand empty ones.
	LogBytes int
	// VarBytes bounds the variables of a call (var_set). Default 1 MiB.
	VarBytes int
	// LateTime bounds how long the host calls of a generation may continue after their calls
	// were out of time or cancelled, all together within an hour. Only those count that come
	// back more than 100 ms late, see [Stats].Late. The one that goes beyond it closes the
	// module, since its guest, or a function of the embedder, holds threads of this process
	// that no deadline gives back. Default 1 minute.
	LateTime time.Duration
	// ModuleBytes bounds the size of the binary. Default 64 MiB, at most 1 GiB.
	ModuleBytes int
}

// withDefaults fills zero fields from base and then from the package's
// defaults. It names the first field that is wrong.
func (l Limits) withDefaults(base Limits) (Limits, error) {
	for _, given := range []Limits{l, base} {
		if err := cmp.Or(given.negative(), given.huge()); err != nil {
			return l, err
		}
	}
	l.MemoryPages = cmp.Or(l.MemoryPages, base.MemoryPages, 1024)
	if l.MemoryPages < engine.MinMemoryPages || l.MemoryPages > engine.MaxMemoryPages {
		return l, fmt.Errorf("Limits.MemoryPages %d is not between %d and %d", l.MemoryPages, engine.MinMemoryPages, engine.MaxMemoryPages)
	}
	size := l.MemoryPages * wasm.PageSize
	l.InputBytes = cmp.Or(l.InputBytes, base.InputBytes, min(8<<20, size/4))
	if l.InputBytes > size/2 {
		return l, fmt.Errorf("Limits.InputBytes %d is more than half of MemoryPages (%d bytes)", l.InputBytes, size)
	}
	l.OutputBytes = cmp.Or(l.OutputBytes, base.OutputBytes, min(8<<20, size/4))
	l.Timeout = cmp.Or(l.Timeout, base.Timeout, 2*time.Second)
	l.Fuel = cmp.Or(l.Fuel, base.Fuel, 100_000_000_000)
	l.InitTimeout = cmp.Or(l.InitTimeout, base.InitTimeout, 5*time.Second)
	l.CompileTimeout = cmp.Or(l.CompileTimeout, base.CompileTimeout, 2*time.Minute)
	l.Instances = cmp.Or(l.Instances, base.Instances, max(2, runtime.GOMAXPROCS(0)))
	l.IdleTimeout = cmp.Or(l.IdleTimeout, base.IdleTimeout, 5*time.Minute)
	l.Sessions = cmp.Or(l.Sessions, base.Sessions, 16)
	l.StderrBytes = cmp.Or(l.StderrBytes, base.StderrBytes, 4<<10)
	l.LogBytes = cmp.Or(l.LogBytes, base.LogBytes, 64<<10)
	l.VarBytes = cmp.Or(l.VarBytes, base.VarBytes, 1<<20)
	l.LateTime = cmp.Or(l.LateTime, base.LateTime, time.Minute)
	l.ModuleBytes = cmp.Or(l.ModuleBytes, base.ModuleBytes, 64<<20)
	return l, nil
}

// bounds are the limits that an engine enforces.
func (l Limits) bounds() engine.Bounds {
	return engine.Bounds{
		MemoryPages: l.MemoryPages, OutputBytes: l.OutputBytes, Timeout: l.Timeout, InitTimeout: l.InitTimeout, Fuel: l.Fuel,
		StderrBytes: l.StderrBytes, LogBytes: l.LogBytes, VarBytes: l.VarBytes,
	}
}

// negative names the first field that is below zero.
func (l Limits) negative() error {
	for field, value := range reflect.ValueOf(l).Fields() {
		if n := value.Int(); n < 0 {
			return fmt.Errorf("%s %d is negative; use 0 for the default", "Limits."+field.Name, n)
		}
	}
	return nil
}

// Largest numbers of what is counted out, or added to.
const (
	maxInstances   = 1 << 16
	maxModuleBytes = 1 << 30
)

// huge names the first field that is larger than anybody can mean.
func (l Limits) huge() error {
	switch {
	case l.Instances > maxInstances:
		return fmt.Errorf("Limits.Instances %d is more than %d", l.Instances, maxInstances)
	case l.ModuleBytes > maxModuleBytes:
		return fmt.Errorf("Limits.ModuleBytes %d is more than %d", l.ModuleBytes, maxModuleBytes)
	}
	return nil
}
