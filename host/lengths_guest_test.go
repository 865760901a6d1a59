package host_test

import "strings"

// Opcodes of a guest that makes a lengthy call.
const (
	opLoop, opBr, opCall, opDrop       = 0x03, 0x0c, 0x10, 0x1a
	opLocalGet, opLocalSet             = 0x20, 0x21
	opI64Const, opI64Add, opI32WrapI64 = 0x42, 0x7c, 0xa7
	opUnreachable, i64                 = 0x00, 0x7e
)

// Where the guest keeps the name of its file, and the number that it gets for it.
const fileName, fileNumber = 70_000_000, 70_000_100

// guest is a module that makes the call in its export once, and for ever in loop.
func (c lengthyCall) guest() []byte {
	params, results := c.types()
	imported := func(module, name string, typ int) []byte { return enc(sized(module), sized(name), 0, typ) }
	open := enc(i32, i32, i32, i32, i32, i64, i64, i32, i32)
	data := enc(0, konst, sleb(fileName), end, sized("f"))
	return wasmOf(
		sec(sType, fn(params, results), fn(nil, enc(i32)), fn(enc(i64), enc(i64)), fn(enc(i64, i32), nil), fn(open, enc(i32))),
		sec(sImport, imported(c.id[0], c.id[1], 0), imported("extism:host/env", "alloc", 2),
			imported("extism:host/env", "store_u8", 3), imported("wasi_snapshot_preview1", "path_open", 4)),
		sec(sFunc, leb(1), leb(1)),
		sec(sMemory, enc(0, leb(1100))),
		sec(sExport, export("once", 0, 4), export("loop", 0, 5), export("memory", 2, 0)),
		sec(sCode, c.code(c.call(params, results)), c.code(enc(opLoop, 0x40, c.call(params, results), opDrop, opBr, 0, end, opUnreachable))),
		sec(sData, data),
	)
}

// types are those of the signature.
func (c lengthyCall) types() (params, results []byte) {
	in, out, _ := strings.Cut(c.signature, " -> ")
	list := func(s string) (types []byte) {
		for _, name := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("(), ", r) }) {
			types = append(types, map[string]byte{"i32": i32, "i64": i64}[name])
		}
		return types
	}
	return list(in), list(out)
}

// code is a function that makes blocks and a file, and then runs a body.
func (c lengthyCall) code(body []byte) []byte {
	const alloc, store, open = 1, 2, 3
	locals := enc(1, leb(len(c.args)), i64)
	prologue := enc(konst, 3, konst, 0, konst, sleb(fileName), konst, 1, konst, 1,
		opI64Const, sleb(0x42), opI64Const, 0, konst, 0, konst, sleb(fileNumber), opCall, open, opDrop)
	for n, a := range c.args {
		if _, number := a.(int); number {
			continue
		}
		content, _ := a.(text)
		size := len(content)
		if block, empty := a.(fill); empty {
			size = int(block)
		}
		prologue = enc(prologue, opI64Const, sleb(size), opCall, alloc, opLocalSet, n)
		for at := range len(content) {
			prologue = enc(prologue, opLocalGet, n, opI64Const, sleb(at), opI64Add, konst, sleb(int(content[at])), opCall, store)
		}
	}
	return sized(locals, prologue, body, end)
}

// call is the call, which leaves an i32.
func (c lengthyCall) call(params, results []byte) (out []byte) {
	for n, a := range c.args {
		v, number := a.(int)
		switch {
		case !number:
			out = enc(out, opLocalGet, n)
		case params[n] == i64:
			out = enc(out, opI64Const, sleb(v))
		default:
			out = enc(out, konst, sleb(v))
		}
	}
	out = enc(out, opCall, 0)
	switch {
	case len(results) == 0:
		out = enc(out, konst, 0)
	case results[0] == i64:
		out = enc(out, opI32WrapI64)
	}
	return out
}

// sleb encodes a number with its sign.
func sleb(v int) []byte {
	var out []byte
	for {
		b := byte(v & 0x7f) //nolint:gosec // its lowest bits are meant
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
