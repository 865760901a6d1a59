package extism

import (
	"context"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// bulkFunctions are the imports of "mortise:host/1".
func bulkFunctions() []extism.HostFunction {
	read := extism.NewHostFunctionWithStack(engine.ImportInputRead, inputRead, []extism.ValueType{extism.ValueTypeI32}, nil)
	write := extism.NewHostFunctionWithStack(engine.ImportOutputWrite, outputWrite, []extism.ValueType{extism.ValueTypeI32, extism.ValueTypeI32}, nil)
	read.SetNamespace(engine.ModuleHost)
	write.SetNamespace(engine.ModuleHost)
	return []extism.HostFunction{read, write}
}

// inputRead copies the input to the guest's memory. A panic in a host function
// ends the guest.
func inputRead(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
	i := instanceOf(ctx)
	ptr := api.DecodeU32(stack[0])
	to := i.Slice(engine.ImportInputRead, ptr, len(i.input))
	copy(to, i.input)
}

// outputWrite takes the output from the guest's memory.
func outputWrite(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
	i := instanceOf(ctx)
	ptr, n := api.DecodeU32(stack[0]), api.DecodeU32(stack[1])
	if uint64(n) > uint64(i.prog.Limits.OutputBytes) { // not negative
		i.Fail(engine.OutputFault(int(n), i.prog.Limits.OutputBytes))
	}
	from := i.Slice(engine.ImportOutputWrite, ptr, int(n))
	i.output = append(make([]byte, 0, len(from)), from...)
	i.written = true
}

// instanceOf returns the instance that called a host function.
func instanceOf(ctx context.Context) *extismInstance {
	i, ok := ctx.Value(InstanceKey{}).(*extismInstance)
	if !ok {
		panic(errors.New("host function called outside of a call"))
	}
	return i
}

// Slice returns a part of the module's memory, or ends the guest.
func (i *extismInstance) Slice(name string, ptr uint32, n int) []byte {
	var mem []byte
	if len(i.prog.Parsed.Memories) > 0 {
		mem = i.memories.main()
	}
	if uint64(ptr)+uint64(n) > uint64(len(mem)) { // n is a length
		i.Fail(&engine.Fault{
			Kind:   engine.TrapFault,
			Detail: fmt.Sprintf("%s: %d bytes at %d are outside the memory of %d bytes", name, n, ptr, len(mem)),
		})
	}
	return mem[ptr : uint64(ptr)+uint64(n)] // n is a length
}

// Fail ends the guest with a fault.
func (i *extismInstance) Fail(f *engine.Fault) {
	i.fault = f
	panic(f)
}
