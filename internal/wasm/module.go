package wasm

import (
	"fmt"
	"strings"
)

// PageSize is the size of a page of linear memory in bytes.
const PageSize = 65536

// ValueType is the type of a parameter, a result or a table element.
type ValueType byte

// Value types.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
	ExnRef    ValueType = 0x69
)

// String returns the name that the text format uses.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	case ExnRef:
		return "exnref"
	}
	return fmt.Sprintf("type(0x%02x)", byte(t))
}

// FuncType is the signature of a function.
type FuncType struct {
	Params, Results []ValueType
}

// String renders the signature, such as "(i32, i64) -> i32".
func (t FuncType) String() string {
	var b strings.Builder
	list := func(ts []ValueType) {
		b.WriteByte('(')
		for i, v := range ts {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.String())
		}
		b.WriteByte(')')
	}
	list(t.Params)
	b.WriteString(" -> ")
	if len(t.Results) == 1 {
		b.WriteString(t.Results[0].String())
	} else {
		list(t.Results)
	}
	return b.String()
}

// ExternKind is the kind of an import or export.
type ExternKind byte

// Kinds of imports and exports.
const (
	KindFunc ExternKind = iota
	KindTable
	KindMemory
	KindGlobal
	KindTag
)

// String returns the name of the kind.
func (k ExternKind) String() string {
	switch k {
	case KindFunc:
		return "func"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	case KindTag:
		return "tag"
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// Limits bound a memory (in pages) or a table (in elements).
type Limits struct {
	Min uint64
	// Max is only meaningful when HasMax is set.
	Max    uint64
	HasMax bool
	// Shared and Is64 belong to the threads and memory64 proposals.
	Shared, Is64 bool
}

// Table is a table of references.
type Table struct {
	Elem   ValueType
	Limits Limits
}

// Import is something that a module needs.
type Import struct {
	Module, Name string
	Kind         ExternKind
	// Func is the signature when Kind is KindFunc, else nil.
	Func *FuncType
	// Limits belong to memories and tables, Elem to tables.
	Limits Limits
	Elem   ValueType
}

// Export is something that a module offers.
type Export struct {
	Name string
	Kind ExternKind
	// Index is in the index space of Kind, imports first.
	Index uint32
	// Func is the signature when Kind is KindFunc, else nil.
	Func *FuncType
}

// Section is one section as it stands in the binary.
type Section struct {
	// ID is the number of the section; 0 is a custom section.
	ID byte
	// Name belongs to custom sections.
	Name string
	// Start is the offset of the section's id, Offset that of Body.
	Start, Offset int
	// Body is what follows the section's length, without a custom section's name.
	Body []byte
}

// Module is a parsed core module.
type Module struct {
	// Sections in the order of the binary.
	Sections []Section
	Types    []FuncType
	Imports  []Import
	Exports  []Export
	// Funcs holds the type index of each function that the module defines.
	Funcs []uint32
	// Memories and Tables are those that the module defines.
	Memories []Limits
	Tables   []Table
	// Globals counts the globals that the module defines.
	Globals int
	// Start is the index of the start function, nil when there is none.
	Start *uint32
	// ImportedFuncs counts the functions among Imports.
	ImportedFuncs int
	// Size of the binary in bytes.
	Size int
	// Names is what is wrong with a name section, nil if nothing is. A wrong one
	// does not make the module wrong, but it must not reach an engine, which would
	// make room for as many names as it claims.
	Names error

	byName map[string]int
	// imported are the signatures of the imported functions.
	imported []*FuncType
}

// Section returns the content of the first custom section with that name, or
// nil. The bytes are shared with the binary.
func (m *Module) Section(name string) []byte {
	for i := range m.Sections {
		if s := &m.Sections[i]; s.ID == 0 && s.Name == name {
			return s.Body
		}
	}
	return nil
}

// Export returns the export with that name.
func (m *Module) Export(name string) (Export, bool) {
	i, ok := m.byName[name]
	if !ok {
		return Export{}, false
	}
	return m.Exports[i], true
}
