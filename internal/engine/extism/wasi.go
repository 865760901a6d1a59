package extism

import (
	"context"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Most that one WASI call may do on this engine, which counts no fuel: it looks at the
// context between two calls only. Paths have a bound of their own, which is above that of a
// mount, so that a guest gets an error for one that is merely too long.
const (
	maxWASIPath    = 64 << 10
	maxWASIEntries = 1 << 20
	maxWASIBytes   = 64 << 20
)

// wasiListener bounds the WASI functions, which go-sdk offers by itself, and finds those
// that come back late.
type wasiListener struct {
	name    string
	lengths []engine.WasiLength
}

func newListener(def api.FunctionDefinition) experimental.FunctionListener {
	return &wasiListener{name: def.Name(), lengths: engine.WasiLengths(def.Name())}
}

// Before implements experimental.FunctionListener.
func (l *wasiListener) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	i, inCall := ctx.Value(InstanceKey{}).(*extismInstance)
	for _, w := range l.lengths {
		n, most := uint64(api.DecodeU32(params[w.Param])), mostAtOnce(w)
		switch {
		case n <= uint64(most): // not negative
		case inCall:
			i.Fail(w.TooMany(l.name, n, most))
		default: // an instance is being made
			panic(w.TooMany(l.name, n, most))
		}
	}
	if inCall {
		i.begun(l.name)
	}
}

// After implements experimental.FunctionListener.
func (l *wasiListener) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64) {
	if i, ok := ctx.Value(InstanceKey{}).(*extismInstance); ok && i.grants.ctx != nil {
		i.Leave()
	}
}

// Abort implements experimental.FunctionListener.
func (*wasiListener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// mostAtOnce is how many entries one call may have on an engine that counts no fuel.
func mostAtOnce(l engine.WasiLength) int {
	switch {
	case l.Errno != 0:
		return maxWASIPath
	case l.Most != 0:
		return l.Most
	case l.Size == 1:
		return maxWASIBytes
	}
	return maxWASIEntries
}

// begun records a host call that begins.
func (i *extismInstance) begun(name string) { i.called, i.entered = name, time.Now() }

// overran returns the host call that begun recorded, if it comes back late.
func (i *extismInstance) overran() *engine.Overrun {
	now := time.Now()
	ended := now
	if at := i.ended.Load(); at != nil {
		ended = *at
	}
	return engine.OverrunOf(i.called, 0, ended.Sub(i.entered), now.Sub(i.entered))
}
