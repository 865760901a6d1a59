package host

import (
	"context"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
)

// bulkFunctions are the imports of "mortise:host/1".
func bulkFunctions() []extism.HostFunction {
	read := extism.NewHostFunctionWithStack(importInputRead, inputRead, []extism.ValueType{extism.ValueTypeI32}, nil)
	write := extism.NewHostFunctionWithStack(importOutputWrite, outputWrite, []extism.ValueType{extism.ValueTypeI32, extism.ValueTypeI32}, nil)
	more := extism.NewHostFunctionWithStack(importMessagesGet, messagesGet,
		[]extism.ValueType{extism.ValueTypeI32, extism.ValueTypeI32}, []extism.ValueType{extism.ValueTypeI64})
	items := extism.NewHostFunctionWithStack(importMessagesRead, messagesRead,
		[]extism.ValueType{extism.ValueTypeI32, extism.ValueTypeI32, extism.ValueTypeI32, extism.ValueTypeI32}, []extism.ValueType{extism.ValueTypeI64})
	read.SetNamespace(moduleHost)
	write.SetNamespace(moduleHost)
	more.SetNamespace(moduleHost)
	items.SetNamespace(moduleHost)
	out := []extism.HostFunction{read, write, more, items}
	for _, f := range hostFunctions() {
		out = append(out, extismFunction(moduleHost, f))
	}
	return out
}

// messagesGet puts a range of what the caller keeps into a new block.
func messagesGet(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
	i := caller(ctx)
	i.begun(importMessagesGet)
	data, bad := rangeOf(ctx, api.DecodeU32(stack[0]), api.DecodeU32(stack[1]), i.prog.limits.InputBytes)
	if bad != nil {
		i.fail(bad)
	}
	i.grants.plugin, i.grants.kernel = p, ctx
	i.spend(len(data))
	stack[0] = 0
	if len(data) > 0 {
		stack[0] = i.store(importMessagesGet, data)
	}
}

// messagesRead copies items of the call to the guest's memory.
func messagesRead(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
	i := caller(ctx)
	from, to, ptr := api.DecodeU32(stack[0]), api.DecodeU32(stack[1]), api.DecodeU32(stack[2])
	var items Items
	if i.grants.ctx != nil { // it is nil while an instance is made
		items = ItemsOf(i.grants.ctx)
	}
	n, fits := sizeOf(items, from, to, api.DecodeU32(stack[3]))
	stack[0] = api.EncodeI64(n)
	if fits {
		items.Copy(i.slice(importMessagesRead, ptr, int(n)), from, to)
	}
}

// inputRead copies the input to the guest's memory. A panic in a host function
// ends the guest.
func inputRead(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
	i := caller(ctx)
	ptr := api.DecodeU32(stack[0])
	to := i.slice(importInputRead, ptr, len(i.input))
	copy(to, i.input)
}

// outputWrite takes the output from the guest's memory.
func outputWrite(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
	i := caller(ctx)
	ptr, n := api.DecodeU32(stack[0]), api.DecodeU32(stack[1])
	if uint64(n) > uint64(i.prog.limits.OutputBytes) { // not negative
		i.fail(i.outputTooLarge(int(n)))
	}
	from := i.slice(importOutputWrite, ptr, int(n))
	i.output = append(make([]byte, 0, len(from)), from...)
	i.written = true
}

// caller returns the instance that called a host function.
func caller(ctx context.Context) *extismInstance {
	i, ok := ctx.Value(instanceKey{}).(*extismInstance)
	if !ok {
		panic(errors.New("host function called outside of a call"))
	}
	return i
}

// slice returns a part of the module's memory, or ends the guest.
func (i *extismInstance) slice(name string, ptr uint32, n int) []byte {
	var mem []byte
	if len(i.prog.parsed.Memories) > 0 {
		mem = i.memories.main()
	}
	if uint64(ptr)+uint64(n) > uint64(len(mem)) { // n is a length
		i.fail(&fault{
			kind:   TrapFault,
			detail: fmt.Sprintf("%s: %d bytes at %d are outside the memory of %d bytes", name, n, ptr, len(mem)),
		})
	}
	return mem[ptr : uint64(ptr)+uint64(n)] // n is a length
}

// fail ends the guest with a fault.
func (i *extismInstance) fail(f *fault) {
	i.fault = f
	panic(f)
}
