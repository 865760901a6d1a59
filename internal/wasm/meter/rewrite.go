package meter

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// DefaultMaxTable bounds tables when Options does not.
const DefaultMaxTable = 1 << 20

// HelperName is the name of each function that the rewriter adds, in the name section.
const HelperName = "mortise:helper"

// Options for [Rewrite].
type Options struct {
	// RefillModule and RefillName are the import that is called, without
	// parameters or results, when the counter is below zero. Required.
	RefillModule, RefillName string
	// MaxTable is how many elements the tables together may have, DefaultMaxTable when 0.
	MaxTable uint32
}

// Result is a rewritten module and what its host must know.
type Result struct {
	Wasm []byte
	// Counter is the export name of the i64 global that counts down.
	Counter string
	// Globals are the export names of the mutable globals that the module
	// defines, in their order.
	Globals []Global
	// Data are active data segments that were taken out of the module. The host
	// copies them into the module's own memory, in their order, before it calls
	// Start; one that does not fit ends the instantiation.
	Data []Segment
	// Start is the export name of the start function, empty when there is none.
	// The host calls it once, after Data; the engine does not.
	Start string
	// Stateful means that the module may change its tables or drop segments: state
	// that neither memory nor globals hold, so that putting those back is not
	// enough.
	Stateful bool
}

// Global is a mutable global that the module defines.
type Global struct {
	Export string
	Type   wasm.ValueType
}

// rewriter holds the index spaces of the original module, and what is added.
type rewriter struct {
	module         *wasm.Module
	types          int
	importedFuncs  int
	funcs          int
	globals        int
	importedTables []wasm.ValueType
	importsMemory  bool
	shared         bool // the module's own memory is shared
	maxTable       uint32

	counter    uint32 // index of the added global
	refill     uint32 // index of the added import
	chargeFunc uint32
	startFunc  uint32 // calls the start function, if the host is to do so

	helpers     []helperFunc
	helperIndex map[string]uint32
	mutable     []mutableGlobal
	data        dataSegments
	stateful    bool
	effort      effort
	pricing     pricing
	total       total
	err         error
}

// mutableGlobal is a mutable global that the module defines.
type mutableGlobal struct {
	index uint32
	typ   wasm.ValueType
}

// Rewrite returns the module with metering. The module must have been parsed
// from the same bytes.
func Rewrite(m *wasm.Module, opts Options) (*Result, error) {
	w := &rewriter{
		module: m, types: len(m.Types), importedFuncs: m.ImportedFuncs,
		funcs: m.ImportedFuncs + len(m.Funcs), maxTable: cmp.Or(opts.MaxTable, DefaultMaxTable),
		helperIndex: make(map[string]uint32),
	}
	if err := w.survey(opts); err != nil {
		return nil, err
	}
	w.refill = uint32(w.importedFuncs)
	w.chargeFunc = w.addHelper(helperFunc{params: []wasm.ValueType{wasm.I64}, body: w.chargeBody()})
	if w.startMoves() {
		// A tail call leaves no frame of ours in a stack trace.
		w.startFunc = w.addHelper(helperFunc{body: append(appendU32([]byte{0, opReturnCall}, w.shift(*w.module.Start)), opEnd)})
	}
	bodies := w.code()
	if w.err != nil {
		return nil, w.err
	}
	prefix := w.prefix()
	result := &Result{Counter: prefix + "fuel", Data: w.data.active, Stateful: w.stateful}
	if w.startMoves() {
		result.Start = prefix + "start"
	}
	for _, g := range w.mutable {
		result.Globals = append(result.Globals, Global{Export: fmt.Sprintf("%sg%d", prefix, g.index), Type: g.typ})
	}
	result.Wasm = w.assemble(bodies, opts, result)
	if w.err != nil {
		return nil, w.err
	}
	return result, nil
}

func (w *rewriter) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("meter: %w", err)
	}
}

// survey counts what the parser does not, and checks the tables.
func (w *rewriter) survey(opts Options) error {
	if opts.RefillModule == "" || opts.RefillName == "" {
		return fmt.Errorf("meter: Options.RefillModule and RefillName are required")
	}
	imported := 0
	for _, im := range w.module.Imports {
		switch im.Kind {
		case wasm.KindGlobal:
			imported++
		case wasm.KindTable:
			w.importedTables = append(w.importedTables, im.Elem)
		case wasm.KindMemory:
			w.importsMemory = true
			if im.Limits.Shared {
				return fmt.Errorf("meter: %w: imported shared memory", ErrUnsupported)
			}
		case wasm.KindFunc, wasm.KindTag:
		}
	}
	if err := checkTables(w.module.Tables, uint64(w.maxTable)); err != nil {
		return err
	}
	if len(w.module.Memories) > 1 {
		return fmt.Errorf("meter: %w: more than one memory", ErrUnsupported)
	}
	for _, l := range w.module.Memories {
		if l.Is64 {
			return fmt.Errorf("meter: %w: 64-bit memory", ErrUnsupported)
		}
		w.shared = l.Shared
	}
	w.globals = imported
	if s := w.section(secGlobal); s != nil {
		w.findMutable(&cursor{b: s.Body}, imported)
	}
	w.counter = uint32(w.globals)
	if s := w.section(secTag); s != nil {
		w.checkTags(&cursor{b: s.Body})
	}
	if s := w.section(secData); s != nil {
		w.surveyData(&cursor{b: s.Body})
	}
	return w.err
}

// checkTables refuses tables that are too large from the start.
func checkTables(tables []wasm.Table, limit uint64) error {
	sum := uint64(0)
	for i, t := range tables {
		if sum += min(t.Limits.Min, limit+1); sum > limit {
			return fmt.Errorf("meter: %w: table %d starts with %d elements, more than the %d that are allowed together",
				ErrInvalid, i, t.Limits.Min, limit)
		}
	}
	return nil
}

// checkTags refuses a tag whose type is one of those that are added. The section
// itself stays as it is.
func (w *rewriter) checkTags(c *cursor) {
	for range c.count(2) {
		c.byte() // attribute
		if typ := c.u32(); int64(typ) >= int64(w.types) {
			c.fail(ErrInvalid, "tag with type %d of %d", typ, w.types)
		}
	}
	c.end()
	if c.err != nil {
		w.fail(c.err)
	}
}

// findMutable lists the mutable globals and counts all of them.
func (w *rewriter) findMutable(c *cursor, imported int) {
	n := c.count(3)
	w.globals += n
	for i := range n {
		typ, mutable := c.valueType(), c.byte()
		if mutable == 1 {
			w.mutable = append(w.mutable, mutableGlobal{index: uint32(imported + i), typ: typ})
			// A host sees 64 bits of a global, and no references.
			w.stateful = w.stateful || typ < wasm.F64 || typ > wasm.I32
		}
		w.constant(c, nil)
	}
	if c.err != nil {
		w.fail(c.err)
	}
}

// prefix is the start of the added exports' names; no export of the module has it.
func (w *rewriter) prefix() string {
	prefix := "mortise:"
	for taken := true; taken; {
		taken = false
		for _, e := range w.module.Exports {
			if strings.HasPrefix(e.Name, prefix) {
				prefix, taken = "mortise_"+prefix, true
				break
			}
		}
	}
	return prefix
}

func (w *rewriter) section(id byte) *wasm.Section { return section(w.module, id) }

func section(m *wasm.Module, id byte) *wasm.Section {
	for i := range m.Sections {
		if m.Sections[i].ID == id {
			return &m.Sections[i]
		}
	}
	return nil
}

// shift moves a function index past the added import.
func (w *rewriter) shift(index uint32) uint32 {
	if int64(index) >= int64(w.importedFuncs) {
		return index + 1
	}
	return index
}

// code rewrites all function bodies.
func (w *rewriter) code() [][]byte {
	s := w.section(secCode)
	if s == nil {
		return nil
	}
	c := &cursor{b: s.Body}
	n := c.count(2) // as many as there are functions
	bodies := make([][]byte, 0, n)
	for i := range n {
		body := c.take(c.count(1))
		if c.err != nil || w.err != nil {
			break
		}
		bodies = append(bodies, w.function(i, body))
	}
	c.end()
	if c.err != nil {
		w.fail(c.err)
	}
	return bodies
}
