package native

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// offerFunctions makes the host module: what the kernel passes on to guests,
// the bulk functions, and the refill of the meter.
func (p *nativeProgram) offerFunctions(ctx context.Context) error {
	b := p.runtime.NewHostModuleBuilder(moduleNative)
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	offer := func(name string, f api.GoModuleFunction, params, results []api.ValueType) {
		b.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
	}
	add := func(name string, f nativeFunction, params, results []api.ValueType) {
		offer(name, nativeImport{name, f}, params, results)
	}
	bulk := func(name string, f nativeFunction, params, results []api.ValueType) {
		offer(name, bulkImport{name, f}, params, results)
	}
	offer(importRefill, api.GoModuleFunc(refill), nil, nil)
	add("config_get", (*nativeInstance).configGet, []api.ValueType{i64}, []api.ValueType{i64})
	add("var_get", (*nativeInstance).varGet, []api.ValueType{i64}, []api.ValueType{i64})
	add("var_set", (*nativeInstance).varSet, []api.ValueType{i64, i64}, nil)
	for _, f := range p.OfEnv() {
		add(f.Name, granted(f), engine.APITypes(f.Params), engine.APITypes(f.Results))
	}
	for name, level := range map[string]slog.Level{
		"log_trace": slog.LevelDebug, "log_debug": slog.LevelDebug, "log_info": slog.LevelInfo,
		"log_warn": slog.LevelWarn, "log_error": slog.LevelError,
	} {
		add(name, func(i *nativeInstance, _ api.Module, stack []uint64) { i.logText(level, stack[0]) }, []api.ValueType{i64}, nil)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	b = p.runtime.NewHostModuleBuilder(engine.ModuleHost)
	bulk(engine.ImportInputRead, (*nativeInstance).inputRead, []api.ValueType{i32}, nil)
	bulk(engine.ImportOutputWrite, (*nativeInstance).outputWrite, []api.ValueType{i32, i32}, nil)
	all := p.ByModule()
	for _, f := range all[engine.ModuleHost] {
		if f.Bulk {
			bulk(f.Name, granted(f), engine.APITypes(f.Params), engine.APITypes(f.Results))
			continue
		}
		add(f.Name, granted(f), engine.APITypes(f.Params), engine.APITypes(f.Results))
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	for module, functions := range all {
		if module == engine.ModuleHost {
			continue
		}
		b = p.runtime.NewHostModuleBuilder(module)
		for _, f := range functions {
			add(f.Name, granted(f), engine.APITypes(f.Params), engine.APITypes(f.Results))
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// nativeFunction is a function for guests.
type nativeFunction func(i *nativeInstance, m api.Module, stack []uint64)

// nativeImport is a nativeFunction with its name.
type nativeImport struct {
	name string
	run  nativeFunction
}

// Call implements api.GoModuleFunction.
func (f nativeImport) Call(ctx context.Context, m api.Module, stack []uint64) {
	i := nativeCaller(ctx)
	i.touched, i.called = true, f.name
	f.run(i, m, stack)
}

// bulkImport moves input or output, and touches nothing else of the instance, or it says so.
type bulkImport nativeImport

// Call implements api.GoModuleFunction.
func (f bulkImport) Call(ctx context.Context, m api.Module, stack []uint64) {
	i := nativeCaller(ctx)
	i.called = f.name
	f.run(i, m, stack)
}

// granted runs a function for the module that calls it.
func granted(f engine.HostFunc) nativeFunction {
	return func(i *nativeInstance, m api.Module, stack []uint64) {
		i.asker = m
		f.Run(i, stack)
	}
}

// nativeCaller returns the instance that called a host function.
func nativeCaller(ctx context.Context) *nativeInstance {
	if c, ok := ctx.(*callContext); ok {
		return c.instance
	}
	i, ok := ctx.Value(instanceKey{}).(*nativeInstance)
	if !ok {
		panic(fmt.Errorf("%w: host function called outside of a call", engine.ErrEngine))
	}
	return i
}

// inputRead copies the input to the guest's memory.
func (i *nativeInstance) inputRead(m api.Module, stack []uint64) {
	i.spendBytes(i.input.Size)
	i.input.CopyTo(i.sliceOf(m, engine.ImportInputRead, api.DecodeU32(stack[0]), i.input.Size))
}

// outputWrite takes the output from the guest's memory.
func (i *nativeInstance) outputWrite(m api.Module, stack []uint64) {
	ptr, n := api.DecodeU32(stack[0]), api.DecodeU32(stack[1])
	if uint64(n) > uint64(i.prog.Limits.OutputBytes) { // not negative
		i.Fail(engine.OutputFault(int(n), i.prog.Limits.OutputBytes))
	}
	i.spendBytes(int(n))
	from := i.sliceOf(m, engine.ImportOutputWrite, ptr, int(n))
	i.output = taken(from)
	i.written = true
}

// taken copies bytes out of a memory. They are made and filled in one step, which
// saves clearing them first.
func taken(from []byte) []byte {
	b := make([]byte, len(from))
	copy(b, from)
	return b
}

// Slice implements guest.
func (i *nativeInstance) Slice(name string, ptr uint32, n int) []byte {
	return i.sliceOf(i.asker, name, ptr, n)
}

// sliceOf returns a part of a module's memory, or ends the guest.
func (i *nativeInstance) sliceOf(m api.Module, name string, ptr uint32, n int) []byte {
	mem := i.memoryOf(m)
	if uint64(ptr)+uint64(n) > uint64(len(mem)) { // n is a length
		i.Fail(&engine.Fault{
			Kind:   engine.TrapFault,
			Detail: fmt.Sprintf("%s: %d bytes at %d are outside the memory of %d bytes", name, n, ptr, len(mem)),
		})
	}
	return mem[ptr : uint64(ptr)+uint64(n)] // n is a length
}

// configGet looks a value of the operator's config up.
func (i *nativeInstance) configGet(_ api.Module, stack []uint64) {
	value, ok := i.prog.Config[string(i.text("config_get", stack[0]))]
	stack[0] = 0
	if ok && value != "" { // as in Extism, an empty value is as none
		stack[0] = i.Store("config_get", []byte(value))
	}
}

// varGet looks a variable up. As in go-sdk, the block of the name is freed: guests
// do not free it.
func (i *nativeInstance) varGet(_ api.Module, stack []uint64) {
	value, ok := i.vars[string(i.text("var_get", stack[0]))]
	i.free(stack[0])
	stack[0] = 0
	if ok {
		stack[0] = i.Store("var_get", value)
	}
}

// varSet keeps a variable until the end of the call. Offset 0 removes it. The
// blocks of name and value are freed, as in go-sdk.
func (i *nativeInstance) varSet(_ api.Module, stack []uint64) {
	name := string(i.text("var_set", stack[0]))
	if old, ok := i.vars[name]; ok {
		i.varBytes -= len(old) + len(name)
		delete(i.vars, name)
	}
	i.free(stack[0])
	if stack[1] == 0 {
		return
	}
	value := append([]byte(nil), i.Block("var_set", stack[1])...)
	i.free(stack[1])
	if i.varBytes += len(value) + len(name); i.varBytes > i.prog.Limits.VarBytes {
		i.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("variables take more than the %d bytes that are allowed", i.prog.Limits.VarBytes)})
	}
	if i.vars == nil {
		i.vars = make(map[string][]byte)
	}
	i.vars[name] = value
}

func (i *nativeInstance) logText(level slog.Level, offset uint64) {
	i.Log.Text(level, string(i.text("log", offset)))
}

// Header of the kernel, see kernel.wat.
const (
	kernelInputOffset  = 0
	kernelInputLength  = 8
	kernelOutputOffset = 16
	kernelOutputLength = 24
	kernelErrorOffset  = 32
	kernelTop          = 40
	kernelHighTop      = 48
	kernelLists        = 64
	kernelClasses      = 28
	kernelHeap         = 1024
	kernelBlockHeader  = 16
)

// head is the kernel's header without the lists.
func (i *nativeInstance) head() *[kernelLists]byte { return (*[kernelLists]byte)(i.mems.kernel.buf) }

func (i *nativeInstance) header(at int) uint64 {
	return binary.LittleEndian.Uint64(i.kernelMemory()[at:])
}

func (i *nativeInstance) setHeader(at int, v uint64) {
	binary.LittleEndian.PutUint64(i.kernelMemory()[at:], v)
}

// at returns length bytes of the kernel's memory below the top of its heap, or
// false. How much memory there is beyond depends on earlier calls.
func (i *nativeInstance) at(offset, length uint64) ([]byte, bool) {
	k := i.kernelMemory()
	top := min(i.header(kernelTop), uint64(len(k)))
	if offset > top || length > top-offset {
		return nil, false
	}
	return k[offset : offset+length], true
}

// blockAt returns the block at an offset, as far as the kernel knows it.
func (i *nativeInstance) blockAt(offset uint64) ([]byte, bool) {
	if offset < kernelHeap+kernelBlockHeader {
		return nil, false
	}
	head, ok := i.at(offset-kernelBlockHeader, 8)
	if !ok {
		return nil, false
	}
	return i.at(offset, binary.LittleEndian.Uint64(head))
}

// Block returns the block at an offset, or ends the guest.
func (i *nativeInstance) Block(name string, offset uint64) []byte {
	b, ok := i.blockAt(offset)
	if !ok {
		i.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("%s: there is no block at %d", name, offset)})
	}
	i.spendBytes(len(b))
	return b
}

// text returns the block at an offset. Without one, at offset 0, it is empty: Extism takes that
// for an empty string, and its PDKs pass one so.
func (i *nativeInstance) text(name string, offset uint64) []byte {
	if offset == 0 {
		i.spendBytes(0)
		return nil
	}
	return i.Block(name, offset)
}

// Store puts data into a new block at the top of the kernel's heap.
func (i *nativeInstance) Store(name string, data []byte) uint64 {
	i.spendBytes(len(data))
	offset, ok := i.push(data)
	if !ok {
		i.Fail(&engine.Fault{Kind: engine.TrapMemory, Detail: fmt.Sprintf("%s: the kernel has no room for %d bytes", name, len(data))})
	}
	return offset
}

// free gives a block back to the kernel, as its own function free does: what is
// not a block, or was freed before, stays as it is.
func (i *nativeInstance) free(offset uint64) {
	block, ok := i.blockAt(offset)
	if !ok || len(block) == 0 {
		return
	}
	k := i.kernelMemory()
	class := binary.LittleEndian.Uint64(k[offset-8:])
	if class >= kernelClasses || offset+8 > uint64(len(k)) {
		return
	}
	list := kernelLists + 8*class
	binary.LittleEndian.PutUint64(k[offset-kernelBlockHeader:], 0)
	binary.LittleEndian.PutUint64(k[offset:], binary.LittleEndian.Uint64(k[list:]))
	binary.LittleEndian.PutUint64(k[list:], offset)
}

// reuse takes a freed block of a class. The guest can have written to the block,
// so where it leads to is checked, and that there is room for the class.
func (i *nativeInstance) reuse(class uint64) (uint64, bool) {
	if class >= kernelClasses {
		return 0, false
	}
	k := i.kernelMemory()
	offset := binary.LittleEndian.Uint64(k[kernelLists+8*class:])
	if offset < kernelHeap+kernelBlockHeader {
		return 0, false
	}
	if _, ok := i.at(offset, 16<<class); !ok {
		return 0, false
	}
	binary.LittleEndian.PutUint64(k[kernelLists+8*class:], binary.LittleEndian.Uint64(k[offset:]))
	return offset, true
}

// push is store without its consequence. Classes are those of kernel.wat.
func (i *nativeInstance) push(data []byte) (uint64, bool) {
	class, size := uint64(0), uint64(16)
	for size < uint64(len(data)) {
		class, size = class+1, size*2
	}
	if offset, ok := i.reuse(class); ok {
		binary.LittleEndian.PutUint64(i.kernelMemory()[offset-kernelBlockHeader:], uint64(len(data)))
		copy(i.kernelMemory()[offset:], data)
		return offset, true
	}
	top := i.header(kernelTop)
	if top < kernelHeap || top > uint64(len(i.kernelMemory())) { // the guest can write it
		return 0, false
	}
	offset := top + kernelBlockHeader
	end := offset + size
	if have := uint64(len(i.kernelMemory())); end > have {
		const page = 1 << 16
		if end > 1<<32-page {
			return 0, false
		}
		if _, ok := i.kernel.Memory().Grow(uint32((end - have + page - 1) / page)); !ok {
			return 0, false
		}
	}
	k := i.kernelMemory()
	binary.LittleEndian.PutUint64(k[top:], uint64(len(data)))
	binary.LittleEndian.PutUint64(k[top+8:], class)
	copy(k[offset:], data)
	i.setHeader(kernelTop, end)
	return offset, true
}
