package host

import (
	"bytes"
	"strings"
)

// strangers are files that people give in the place of a module, by how they begin.
func strangers() []struct{ magic, text, hint string } {
	const binary = "give the path of a .wasm binary"
	return []struct{ magic, text, hint string }{
		{"\x1f\x8b", "is compressed with gzip, not WebAssembly", "unpack it first (gunzip)"},
		{"\x28\xb5\x2f\xfd", "is compressed with zstd, not WebAssembly", "unpack it first (unzstd)"},
		{"PK\x03\x04", "is a zip archive, not WebAssembly", "unpack it, and give the path of the .wasm file in it"},
		{"\x7fELF", "is a program or library for Linux, not WebAssembly", "build it for wasm32-wasip1"},
		{"MZ", "is a program or library for Windows, not WebAssembly", "build it for wasm32-wasip1"},
		{"\xcf\xfa\xed\xfe", "is a program or library for macOS, not WebAssembly", "build it for wasm32-wasip1"},
		{"\xca\xfe\xba\xbe", "is a program or library for macOS, or a Java class, not WebAssembly", "build it for wasm32-wasip1"},
		{"!<arch>\n", "is a library of object files, not WebAssembly", "link it into a module first"},
		{"BC\xc0\xde", "is bitcode of LLVM, not WebAssembly", "compile and link it into a module first"},
		{"version https://git-lfs", "is a pointer of Git LFS, not WebAssembly", "fetch the file itself (git lfs pull)"},
		{"<", "is a page of HTML or XML, not WebAssembly", "look at what was downloaded, and " + binary},
		{"{", "is JSON, not WebAssembly", binary},
		{"(", "is WebAssembly in text, not a binary", "make a binary of it with wat2wasm"},
		{";;", "is WebAssembly in text, not a binary", "make a binary of it with wat2wasm"},
		{"#!", "is a script, not WebAssembly", binary},
	}
}

// strange describes what a file is that is not WebAssembly, as far as its start tells.
func strange(bin []byte) (text, hint string) {
	const enough = 512
	start := string(bytes.TrimLeft(bin[:min(len(bin), enough)], "\ufeff \t\r\n"))
	for _, s := range strangers() {
		if strings.HasPrefix(start, s.magic) {
			return s.text, s.hint
		}
	}
	return "is not WebAssembly", "give the path of a .wasm binary (text has to go through wat2wasm)"
}
