package wasm_test

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

func ExampleParse() {
	binary := []byte("\x00asm\x01\x00\x00\x00" + // header
		"\x01\x05\x01\x60\x00\x01\x7f" + // a type () -> i32
		"\x03\x02\x01\x00" + // a function of that type
		"\x07\x08\x01\x04ping\x00\x00" + // exported as ping
		"\x0a\x06\x01\x04\x00\x41\x00\x0b") // its body
	m, err := wasm.Parse(binary)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ex := range m.Exports {
		fmt.Println(ex.Name, ex.Kind, ex.Func)
	}
	// Output: ping func () -> i32
}
