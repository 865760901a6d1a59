package native

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// ownFrame makes a frame of a rewritten module one of the guest's binary: a function that the
// rewriter added has none, and numbers of functions without a name are one lower there, since
// the rewriter adds an import. A frame reads "module.name(i32) i32" or "module.$7(i32) i32".
func ownFrame(frame string) (own string, shown bool) {
	name, signature, _ := strings.Cut(frame, "(")
	at := strings.LastIndexByte(name, '.')
	if at < 0 || name[:at] == engine.ModuleEnv {
		return frame, true
	}
	function := name[at+1:]
	if function == meter.HelperName {
		return "", false
	}
	number, isNumber := strings.CutPrefix(function, "$")
	n, err := strconv.ParseUint(number, 10, 32)
	if !isNumber || err != nil || n == 0 {
		return frame, true
	}
	return fmt.Sprintf("%s.$%d(%s", name[:at], n-1, signature), true
}

// namedKernel is the kernel with the name of the module that it is to guests. That tells its
// frames, whose numbers are those of kernel.wat, from the guest's.
func namedKernel() ([]byte, error) {
	m, err := wasm.Parse(kernelWasm)
	if err != nil {
		return nil, fmt.Errorf("%w: kernel: %w", engine.ErrEngine, err)
	}
	sized := func(parts ...[]byte) []byte {
		b := bytes.Join(parts, nil)
		return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
	}
	out := kernelWasm
	for _, s := range m.Sections {
		if s.ID == 0 && s.Name == "name" {
			module := append([]byte{0}, sized(sized([]byte(engine.ModuleEnv)))...) // the first part of the section
			section := append([]byte{0}, sized(sized([]byte(s.Name)), module, s.Body)...)
			out = slices.Concat(kernelWasm[:s.Start], section, kernelWasm[s.Offset+len(s.Body):])
		}
	}
	return out, nil
}
