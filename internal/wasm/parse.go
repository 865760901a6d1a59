package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Section numbers of the format.
const (
	idCustom    = 0
	idType      = 1
	idImport    = 2
	idFunction  = 3
	idTable     = 4
	idMemory    = 5
	idGlobal    = 6
	idExport    = 7
	idStart     = 8
	idElement   = 9
	idCode      = 10
	idData      = 11
	idDataCount = 12
	idTag       = 13
)

// rank returns the place of a section in the binary, 0 for an unknown one.
func rank(id byte) int {
	switch id {
	case idType, idImport, idFunction, idTable, idMemory:
		return int(id)
	case idTag:
		return 6
	case idGlobal, idExport, idStart, idElement:
		return int(id) + 1
	case idDataCount:
		return 11
	case idCode, idData:
		return int(id) + 2
	}
	return 0
}

// Parse decodes a core module. The result shares b. The error is a
// [*ParseError].
func Parse(b []byte) (*Module, error) {
	if err := header(b); err != nil {
		return nil, err
	}
	m := &Module{Size: len(b), byName: map[string]int{}}
	r := &reader{b: b, pos: 8, end: len(b)}
	if err := countSections(*r); err != nil {
		return nil, err
	}
	last, code := 0, -1 // no code section yet
	for r.remaining() > 0 {
		s, body, err := readSection(r)
		if err != nil {
			return nil, err
		}
		m.Sections = append(m.Sections, s)
		if s.ID == idCustom {
			m.custom(s, body)
			continue
		}
		at := rank(s.ID)
		if at == 0 {
			return nil, failAt(s.Start, ErrMalformed, "unknown section %d", s.ID)
		}
		if at <= last {
			return nil, failAt(s.Start, ErrMalformed, "section %d is repeated or out of order", s.ID)
		}
		last = at
		if err := m.decode(s.ID, body, &code); err != nil {
			return nil, err
		}
	}
	if code < 0 && len(m.Funcs) > 0 {
		return nil, failAt(len(b), ErrTruncated, "%d functions but no code section", len(m.Funcs))
	}
	if max(code, 0) != len(m.Funcs) {
		return nil, failAt(len(b), ErrMalformed, "%d functions but %d bodies", len(m.Funcs), code)
	}
	if err := m.resolve(); err != nil {
		return nil, err
	}
	return m, nil
}

// custom looks at a custom section. Only a name section matters here.
func (m *Module) custom(s Section, body *reader) {
	if s.Name != "name" || m.Names != nil {
		return
	}
	if err := body.names(); err != nil {
		m.Names = inSection(err)
	}
}

// header checks magic and version.
func header(b []byte) error {
	magic := []byte("\x00asm")
	if len(b) == 0 {
		return failAt(0, ErrMagic, "no bytes")
	}
	if n := min(len(b), len(magic)); !bytes.Equal(b[:n], magic[:n]) {
		return failAt(0, ErrMagic, "the first bytes are % x", b[:n])
	}
	if len(b) < 8 {
		return failAt(len(b), ErrTruncated, "the header has %d of 8 bytes", len(b))
	}
	version, layer := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])
	switch {
	case layer == 1:
		return failAt(4, ErrComponent, "version %d", version)
	case layer != 0 || version != 1:
		return failAt(4, ErrVersion, "version %d, layer %d", version, layer)
	}
	return nil
}

// readSection reads the header of a section and returns a reader of its body.
func readSection(r *reader) (Section, *reader, error) {
	s := Section{Start: r.pos}
	var err error
	if s.ID, err = r.byte("section id"); err != nil {
		return s, nil, err
	}
	at := r.pos
	n, err := r.u32("section length")
	if err != nil {
		return s, nil, err
	}
	if int64(n) > int64(r.remaining()) {
		return s, nil, failAt(at, ErrTruncated, "section %d needs %d bytes, %d are left", s.ID, n, r.remaining())
	}
	body := &reader{b: r.b, pos: r.pos, end: r.pos + int(n)}
	r.pos = body.end
	if s.ID == idCustom {
		if s.Name, err = body.name("section name"); err != nil {
			return s, nil, inSection(err)
		}
	}
	s.Offset, s.Body = body.pos, r.b[body.pos:body.end:body.end]
	return s, body, nil
}

// inSection turns a truncation within a complete section into malformed: the
// section lies about its content, the file is not cut off.
func inSection(err error) error {
	var pe *ParseError
	if errors.As(err, &pe) && errors.Is(pe.Err, ErrTruncated) {
		return &ParseError{Offset: pe.Offset, Detail: pe.Detail, Err: ErrMalformed}
	}
	return err
}

// decode reads the sections that the package understands.
func (m *Module) decode(id byte, r *reader, code *int) error {
	var err error
	exact := true
	switch id {
	case idType:
		err = m.types(r)
	case idImport:
		err = m.imports(r)
	case idFunction:
		err = m.funcs(r)
	case idTable:
		err = m.tables(r)
	case idMemory:
		err = m.memories(r)
	case idExport:
		err = m.exports(r)
	case idStart:
		err = m.start(r)
	case idGlobal:
		exact = false
		m.Globals, err = r.globals()
	case idCode:
		exact = false
		*code, err = r.count(2, "function bodies")
	default:
		exact = false
		err = r.claims(id)
	}
	if err != nil {
		return inSection(err)
	}
	if exact && r.remaining() != 0 {
		return r.fail(ErrMalformed, "%d bytes are left over in section %d", r.remaining(), id)
	}
	return nil
}
