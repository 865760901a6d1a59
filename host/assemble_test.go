package host_test

import "bytes"

// Section numbers, in the order in which they stand in a module.
const (
	sType, sImport, sFunc, sTable, sMemory = 1, 2, 3, 4, 5
	sGlobal, sExport, sStart, sElem        = 6, 7, 8, 9
	sCode, sData, sCustom                  = 10, 11, 0
)

// Value types and the opcodes that the tests write often.
const (
	i32, end, konst = 0x7f, 0x0b, 0x41
)

// enc joins bytes. An int is one byte, a string is its bytes.
func enc(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p)) //nolint:gosec // one byte is meant
		case string:
			out = append(out, p...)
		case []byte:
			out = append(out, p...)
		default:
			panic("enc: int, string or []byte")
		}
	}
	return out
}

// leb encodes an unsigned number.
func leb(v int) []byte {
	var out []byte
	for ; v >= 0x80; v >>= 7 {
		out = append(out, byte(v)|0x80) //nolint:gosec // its lowest bits are meant
	}
	return append(out, byte(v))
}

// sized puts a length before content: a name, or a function body.
func sized(parts ...any) []byte {
	content := enc(parts...)
	return enc(leb(len(content)), content)
}

// vec puts the number of items before them.
func vec(items ...[]byte) []byte { return enc(leb(len(items)), bytes.Join(items, nil)) }

func sec(id int, items ...[]byte) []byte { return enc(id, sized(vec(items...))) }

// wasmOf joins sections to a module.
func wasmOf(sections ...[]byte) []byte {
	return enc("\x00asm\x01\x00\x00\x00", bytes.Join(sections, nil))
}

// body is a function without locals; its end is added.
func body(ops ...any) []byte { return sized(0, enc(ops...), end) }

// fn is a signature.
func fn(params, results []byte) []byte {
	return enc(0x60, leb(len(params)), params, leb(len(results)), results)
}

func export(name string, kind, index int) []byte { return enc(sized(name), kind, leb(index)) }
