package meter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Section ids.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunc      = 3
	secTable     = 4
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
	secTag       = 13
)

// order is the order in which sections stand in a module.
func order() []byte { return []byte{1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11} }

// assemble writes the module anew: every section in its order, the custom ones
// behind it.
func (w *rewriter) assemble(bodies [][]byte, opts Options, result *Result) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range order() {
		var body []byte
		if s := w.section(id); s != nil {
			body = s.Body
		}
		if body = w.rewriteSection(id, body, bodies, opts, result); body != nil {
			out = appendBytes(append(out, id), body)
		}
	}
	named := false
	for i := range w.module.Sections {
		s := &w.module.Sections[i]
		// wazero cannot read an empty custom section at the end of a module.
		if s.ID != secCustom || len(s.Body) == 0 || strings.HasPrefix(s.Name, ".debug_") {
			continue
		}
		content := s.Body
		if s.Name == "name" {
			if content = w.names(content); content == nil {
				continue
			}
			named = true
		}
		out = appendCustom(out, s.Name, content)
	}
	if !named {
		out = appendCustom(out, "name", w.helperNames())
	}
	return out
}

func appendCustom(out []byte, name string, content []byte) []byte {
	return appendBytes(append(out, secCustom), append(appendName(nil, name), content...))
}

func (w *rewriter) rewriteSection(id byte, body []byte, bodies [][]byte, opts Options, result *Result) []byte {
	switch id {
	case secType:
		return w.grow(body, 1+len(w.helpers), w.addTypes())
	case secImport:
		added := appendName(appendName(nil, opts.RefillModule), opts.RefillName)
		added = appendU32(append(added, byte(wasm.KindFunc)), uint32(w.types))
		return w.grow(body, 1, added)
	case secFunc:
		var added []byte
		for i := range w.helpers {
			added = appendU32(added, uint32(w.types+1+i))
		}
		return w.grow(body, len(w.helpers), added)
	case secGlobal:
		added := []byte{byte(wasm.I64), 1, 0x42, 0, opEnd}
		return w.grow(w.globalSection(body), 1, added)
	case secExport:
		n := 1 + len(result.Globals)
		if result.Start != "" {
			n++
		}
		return w.grow(w.exportSection(body), n, w.addExports(result))
	case secStart:
		return w.startSection(body)
	case secDataCount:
		return w.dataCountSection(body)
	case secData:
		return w.dataSection(body)
	case secElement:
		return w.elementSection(body)
	case secCode:
		return w.codeSection(bodies)
	default:
		return body
	}
}

// grow adds n entries, encoded in added, to a section that is a vector.
func (w *rewriter) grow(body []byte, n int, added []byte) []byte {
	c := &cursor{b: body}
	have := uint32(0)
	if len(body) > 0 {
		have = c.u32()
	}
	if c.err != nil {
		w.fail(c.err)
		return nil
	}
	out := appendU32(nil, have+uint32(n))
	return append(append(out, body[c.pos:]...), added...)
}

// addTypes are those of the refill import and of the helpers.
func (w *rewriter) addTypes() []byte {
	out := []byte{0x60, 0, 0}
	for _, h := range w.helpers {
		out = appendU32(append(out, 0x60), uint32(len(h.params)))
		for _, t := range h.params {
			out = append(out, byte(t))
		}
		out = appendU32(out, uint32(len(h.results)))
		for _, t := range h.results {
			out = append(out, byte(t))
		}
	}
	return out
}

func (w *rewriter) addExports(result *Result) []byte {
	out := appendU32(append(appendName(nil, result.Counter), byte(wasm.KindGlobal)), w.counter)
	for i, g := range result.Globals {
		out = appendU32(append(appendName(out, g.Export), byte(wasm.KindGlobal)), w.mutable[i].index)
	}
	if result.Start != "" {
		out = appendU32(append(appendName(out, result.Start), byte(wasm.KindFunc)), w.startFunc)
	}
	return out
}

func (w *rewriter) globalSection(body []byte) []byte {
	if body == nil {
		return nil
	}
	c := &cursor{b: body}
	n := c.count(3)
	out := appendU32(nil, uint32(n))
	for range n {
		out = append(out, c.byte(), c.byte())
		out = w.constant(c, out)
	}
	c.end()
	if c.err != nil {
		w.fail(c.err)
	}
	return out
}

// constant copies a constant expression, with function indices moved.
func (w *rewriter) constant(c *cursor, out []byte) []byte {
	var i instruction
	for c.more() {
		c.next(&i)
		w.checkIndices(c, &i, 0)
		if i.op == opRefFunc {
			out = appendU32(append(out, opRefFunc), w.shift(i.index))
		} else if c.err == nil {
			out = append(out, i.raw...)
		}
		if i.op == opEnd {
			return out
		}
	}
	c.fail(ErrInvalid, "constant expression without an end")
	return out
}

func (w *rewriter) exportSection(body []byte) []byte {
	if body == nil {
		return nil
	}
	out := appendU32(nil, uint32(len(w.module.Exports)))
	for _, e := range w.module.Exports {
		index := e.Index
		switch e.Kind {
		case wasm.KindFunc:
			index = w.shift(index)
		case wasm.KindGlobal:
			if int64(index) >= int64(w.globals) {
				w.fail(fmt.Errorf("%w: export %q: global %d of %d", ErrInvalid, e.Name, index, w.globals))
			}
		case wasm.KindTable, wasm.KindMemory, wasm.KindTag:
		}
		out = appendU32(append(appendName(out, e.Name), byte(e.Kind)), index)
	}
	return out
}

func (w *rewriter) startSection(body []byte) []byte {
	if body == nil || w.module.Start == nil || w.startMoves() {
		return nil
	}
	return appendU32(nil, w.shift(*w.module.Start))
}

// startMoves reports whether the host calls the start function, through a function
// that is added: an export of the function itself would let the module refer to
// it. One that takes or returns something stays, so that the engine refuses it.
func (w *rewriter) startMoves() bool {
	if w.module.Start == nil {
		return false
	}
	t := w.module.TypeOf(*w.module.Start)
	return t != nil && len(t.Params)+len(t.Results) == 0
}

func (w *rewriter) codeSection(bodies [][]byte) []byte {
	const length = 5 // the most bytes of a number
	size := length
	for _, b := range bodies {
		size += length + len(b)
	}
	for _, h := range w.helpers {
		size += length + len(h.body)
	}
	out := appendU32(make([]byte, 0, size), uint32(len(bodies)+len(w.helpers)))
	for _, b := range bodies {
		out = appendBytes(out, b)
	}
	for _, h := range w.helpers {
		out = appendBytes(out, h.body)
	}
	return out
}

// elementSection moves the function indices in element segments.
func (w *rewriter) elementSection(body []byte) []byte {
	if body == nil {
		return nil
	}
	c := &cursor{b: body}
	n := c.count(2)
	out := appendU32(nil, uint32(n))
	for range n {
		out = w.segment(c, out)
	}
	c.end()
	if c.err != nil {
		w.fail(c.err)
	}
	return out
}

// segment copies one element segment. Bit 0 of its flags: not active; bit 1: a
// table index, or declarative; bit 2: expressions in place of indices.
func (w *rewriter) segment(c *cursor, out []byte) []byte {
	flags := c.u32()
	if flags > 7 {
		c.fail(ErrInvalid, "element segment flags %d", flags)
		return out
	}
	out = appendU32(out, flags)
	if active := flags&1 == 0; active {
		if flags&2 != 0 {
			out = appendU32(out, c.u32())
		}
		out = w.constant(c, out)
	}
	switch {
	case flags&3 == 0:
	case flags&4 != 0:
		out = append(out, byte(c.valueType()))
	default:
		out = append(out, c.byte()) // element kind
	}
	n := c.count(1)
	out = appendU32(out, uint32(n))
	for range n {
		if flags&4 != 0 {
			out = w.constant(c, out)
			continue
		}
		index := c.u32()
		if int64(index) >= int64(w.funcs) {
			c.fail(ErrInvalid, "function %d of %d in an element segment", index, w.funcs)
		}
		out = appendU32(out, w.shift(index))
	}
	return out
}

// nameFunctions is the id of the function names in the name section.
const nameFunctions = 1

// names moves the function indices in the name section, and names the helpers. A section
// that cannot be read is left out: names that are off by one would mislead.
func (w *rewriter) names(content []byte) []byte {
	c := &cursor{b: content}
	var out []byte
	named := false
	for c.more() {
		id := c.byte()
		body := c.take(c.count(1))
		if id > nameFunctions && !named { // they stand in order
			out, named = append(out, w.helperNames()...), true
		}
		named = named || id == nameFunctions
		if id == 0 { // the module's name: a length that lies would cost memory
			name := &cursor{b: body}
			name.skip(name.count(1))
			if name.err != nil {
				return nil
			}
		}
		if slices.Contains([]byte{nameFunctions, 2, 3}, id) {
			if body = w.nameMap(body, id != nameFunctions); body == nil {
				return nil
			}
		}
		out = appendBytes(append(out, id), body)
	}
	if c.err != nil {
		return nil
	}
	if !named {
		out = append(out, w.helperNames()...)
	}
	return out
}

// helperNames are the function names of a module that has none of its own.
func (w *rewriter) helperNames() []byte {
	body := w.appendHelperNames(appendU32(nil, uint32(len(w.helpers))))
	return appendBytes([]byte{nameFunctions}, body)
}

func (w *rewriter) appendHelperNames(out []byte) []byte {
	for n := range w.helpers {
		out = appendName(appendU32(out, uint32(w.funcs+1+n)), HelperName)
	}
	return out
}

// nameMap moves the outer indices of a name map, or of an indirect one. The map of the
// functions gets the helpers too, whose indices are above all others.
func (w *rewriter) nameMap(body []byte, indirect bool) []byte {
	c := &cursor{b: body}
	n := c.count(2)
	have := n
	if !indirect {
		have += len(w.helpers)
	}
	out := appendU32(nil, uint32(have))
	for range n {
		index := c.u32()
		if int64(index) >= int64(w.funcs) {
			return nil
		}
		out = appendU32(out, w.shift(index))
		start := c.pos
		if indirect {
			for range c.count(2) {
				c.u32()
				c.skip(c.count(1))
			}
		} else {
			c.skip(c.count(1))
		}
		if c.err != nil {
			return nil
		}
		out = append(out, body[start:c.pos]...)
	}
	c.end()
	if c.err != nil {
		return nil
	}
	if !indirect {
		out = w.appendHelperNames(out)
	}
	return out
}
