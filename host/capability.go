package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// capabilities are the resolved grants of a loaded module, shared by its
// instances. It is safe for concurrent use.
type capabilities struct {
	module string
	logger *slog.Logger
	kv     *KVSpace
	model  *Model
	broker *egress.Broker
	// folders are the open mounts.
	folders []*folder
	// functions are those of the embedder.
	functions []Function
	// use counts for the whole module, whatever its generation.
	use *usage
}

// usage counts what guests did with their grants.
type usage struct {
	denied, kv, files, functions, model, http atomic.Int64
	models                                    ledger
	egress                                    egress.Budget
}

// openCapabilities opens what the grants name. close gives it back.
func openCapabilities(src *source, use *usage) (*capabilities, error) {
	broker, err := openBroker(&src.grants, &use.egress, src.logger.With("module", src.name))
	if err != nil {
		return nil, fmt.Errorf("host: module %q: %w", src.name, err)
	}
	c := &capabilities{module: src.name, logger: src.logger, kv: src.grants.KV, model: src.grants.Model, broker: broker, functions: src.grants.Functions, use: use}
	for n, m := range src.grants.Files {
		f, err := openFolder(m)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host: module %q: Grants.Files[%d]: %w", src.name, n, err), c.close())
		}
		c.folders = append(c.folders, f)
	}
	return c, nil
}

// close comes after the last instance was closed.
func (c *capabilities) close() error {
	if c.broker != nil {
		c.broker.Close()
	}
	var errs []error
	for _, f := range c.folders {
		errs = append(errs, f.root.Close())
	}
	return errors.Join(errs...)
}

// blocking tells whether the guest can reach code of the embedder.
func (c *capabilities) blocking() bool {
	return c.kv != nil || c.model != nil || c.broker != nil || len(c.functions) > 0
}

func (u *usage) stats(s *Stats) {
	s.Denied, s.KV, s.Files = u.denied.Load(), u.kv.Load(), u.files.Load()
	s.Functions, s.Model, s.HTTP = u.functions.Load(), u.model.Load(), u.http.Load()
	spent := u.models.total()
	s.ModelTokens, s.ModelCost = spent.tokens, spent.cost
}

// insideKey marks the context that code of the embedder gets from a guest of a
// module, of which there is one usage.
type insideKey struct{ use *usage }

// inside tells whether ctx comes from a guest of the same module.
func (c *capabilities) inside(ctx context.Context) bool {
	return c.blocking() && ctx.Value(insideKey{c.use}) != nil
}

// blocks gives a host function access to the guest. What is outside of memory
// ends the guest.
type blocks interface {
	// block returns the bytes at an offset of the kernel, until the guest goes on or
	// the next store.
	block(name string, offset uint64) []byte
	// store puts bytes into a new block and returns its offset.
	store(name string, data []byte) uint64
	// slice returns a part of the guest's own memory.
	slice(name string, ptr uint32, n int) []byte
}

// course is the way that a call takes.
type course interface {
	// enter comes before work that may block. Its context ends with the call. It ends
	// the guest when no call is in progress.
	enter(name string) (context.Context, *callState)
	// leave comes after such work. It ends the guest when its time is up.
	leave()
	// fail ends the guest. forgive takes that back for a fault that was recovered.
	fail(f *fault)
	forgive()
}

// guest is a call in progress, as a host function sees it.
type guest interface {
	blocks
	course

	// spend takes fuel, where fuel is counted.
	spend(units int)
	// allowed are the grants of the module.
	allowed() *Grants
}

// callState is what capabilities remember within one call.
type callState struct {
	caps *capabilities
	// text is that of the last negative code.
	text string
	// asked counts questions to the model.
	asked int
	// spent is what the call's questions to roles came to.
	spent map[string]expense
	// response is the last one of http.
	response httpResponse
}

// refuse remembers why, and returns the code for the guest.
func (s *callState) refuse(code ErrorCode, text string) uint64 {
	switch code {
	case CodeDenied, CodeQuota, CodeTooLarge:
		s.caps.use.denied.Add(1)
	default:
	}
	s.text = code.String() + ": " + text
	return uint64(int64(code)) //nolint:gosec // a negative i64 for the guest
}

// failed words an error of the embedder's code for the guest. The guest is told
// nothing of the error's text, which may hold what is none of its business.
func (s *callState) failed(ctx context.Context, what string, err error) uint64 {
	switch {
	case errors.Is(err, ErrQuota):
		return s.refuse(CodeQuota, what+": the quota is used up")
	case errors.Is(err, context.DeadlineExceeded):
		return s.refuse(CodeTimeout, what+": it took too long")
	}
	s.caps.logger.WarnContext(ctx, "capability failed", "module", s.caps.module, "capability", what,
		"error", clean(err.Error(), maxDetail))
	return s.refuse(CodeFailed, what+": it did not work")
}

// guard runs code of the embedder and makes an error of a panic.
func guard(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %s", clean(fmt.Sprint(r), maxDetail))
		}
	}()
	return run()
}

// hostFunc is a function that the host offers to guests, on every engine.
type hostFunc struct {
	name            string
	params, results []ValueType
	// grant is the field of Grants that it needs, empty when it needs none.
	grant string
	run   func(g guest, stack []uint64)
}

func (f hostFunc) signature() string { return funcType(f.params, f.results).String() }

func funcType(params, results []ValueType) wasm.FuncType {
	list := func(in []ValueType) []wasm.ValueType {
		out := make([]wasm.ValueType, len(in))
		for i, t := range in {
			out[i] = wasm.ValueType(t)
		}
		return out
	}
	return wasm.FuncType{Params: list(params), Results: list(results)}
}

// Fields of [Grants] that imports need.
const (
	grantKV    = "KV"
	grantModel = "Model"
	grantHTTP  = "HTTP"
)

// hostFunctions are the functions of "mortise:host/1" beyond those that move
// input and output.
func hostFunctions() []hostFunc {
	one, two := []ValueType{I64}, []ValueType{I64, I64}
	return []hostFunc{
		{"host_error", nil, one, "", hostError},
		{"kv_get", one, one, grantKV, kvGet},
		{"kv_set", two, []ValueType{I32}, grantKV, kvSet},
		{"kv_delete", one, []ValueType{I32}, grantKV, kvDelete},
		{"kv_list", []ValueType{I64, I64, I32}, one, grantKV, kvList},
		{"http_fetch", two, one, grantHTTP, httpFetch},
		{"model_ask", one, one, grantModel, modelAsk},
		{importModelInfo, one, one, "", modelInfo},
		{importModelChat, two, one, "", modelChat},
	}
}

// functionModules groups the functions of the embedder by their import modules.
func (c *capabilities) functionModules() map[string][]hostFunc {
	out := map[string][]hostFunc{}
	for _, f := range c.functions {
		out[f.Module] = append(out[f.Module], f.hostFunc())
	}
	return out
}

// hostError is the import host_error.
func hostError(g guest, stack []uint64) {
	_, s := g.enter("host_error")
	stack[0] = 0
	if s.text != "" {
		stack[0] = g.store("host_error", []byte(s.text))
	}
}
