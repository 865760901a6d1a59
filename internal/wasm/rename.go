package wasm

import "encoding/binary"

// RenameImports returns the binary of m with other names of imports. rename gets
// the module and the name of each and returns what they become; what it returns
// must be UTF-8. Nothing else changes, so all indices stay as they are. m is not
// changed. The error is that of a module which [Parse] would not have returned.
func RenameImports(m *Module, bin []byte, rename func(module, name string) (string, string)) ([]byte, error) {
	for _, s := range m.Sections {
		if s.ID != idImport {
			continue
		}
		body, err := m.renamed(s, rename)
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, len(bin)+len(body)-len(s.Body)+5)
		out = append(out, bin[:s.Start]...)
		out = append(out, idImport)
		out = appendBytes(out, body)
		return append(out, bin[s.Offset+len(s.Body):]...), nil
	}
	return append([]byte(nil), bin...), nil
}

// renamed is the import section with other names. What an import is made of is
// walked over and copied.
func (m *Module) renamed(s Section, rename func(module, name string) (string, string)) ([]byte, error) {
	r := &reader{b: s.Body, end: len(s.Body)}
	n, err := r.count(4, "imports")
	if err != nil {
		return nil, err
	}
	out := binary.AppendUvarint(make([]byte, 0, len(s.Body)), uint64(n)) // not negative
	walk := &Module{Types: m.Types}
	for range n {
		var im Import
		if im.Module, err = r.name("import module"); err != nil {
			return nil, err
		}
		if im.Name, err = r.name("import name"); err != nil {
			return nil, err
		}
		from := r.pos
		if err := walk.importDesc(r, &im); err != nil {
			return nil, err
		}
		module, name := rename(im.Module, im.Name)
		out = appendBytes(appendBytes(out, []byte(module)), []byte(name))
		out = append(out, s.Body[from:r.pos]...)
	}
	return out, nil
}

// appendBytes appends b behind its length. Both numbers of the binary format and
// those of package binary are LEB128.
func appendBytes(out, b []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}
