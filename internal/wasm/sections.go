package wasm

func (m *Module) types(r *reader) error {
	n, err := r.bounded(3, maxTypes, "types")
	if err != nil {
		return err
	}
	m.Types = make([]FuncType, 0, n)
	for range n {
		at := r.pos
		form, err := r.byte("type form")
		if err != nil {
			return err
		}
		switch {
		case form == 0x60:
		case form >= 0x4e && form <= 0x5f:
			return failAt(at, ErrUnsupported, "type form 0x%02x (garbage collection)", form)
		default:
			return failAt(at, ErrMalformed, "type form 0x%02x", form)
		}
		var t FuncType
		if t.Params, err = r.valueTypes("parameters of a type"); err != nil {
			return err
		}
		if t.Results, err = r.valueTypes("results of a type"); err != nil {
			return err
		}
		if err := r.add(len(t.Params)+len(t.Results), maxValues, "parameters and results of types"); err != nil {
			return err
		}
		m.Types = append(m.Types, t)
	}
	return nil
}

func (r *reader) valueTypes(what string) ([]ValueType, error) {
	n, err := r.bounded(1, maxArity, what)
	if err != nil || n == 0 {
		return nil, err
	}
	out := make([]ValueType, n)
	for i := range out {
		if out[i], err = r.valueType("value type"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// typeIndex reads the index of a signature.
func (m *Module) typeIndex(r *reader) (uint32, error) {
	at := r.pos
	i, err := r.u32("type index")
	if err != nil {
		return 0, err
	}
	if int64(i) >= int64(len(m.Types)) {
		return 0, failAt(at, ErrMalformed, "type index %d of %d", i, len(m.Types))
	}
	return i, nil
}

func (m *Module) imports(r *reader) error {
	n, err := r.bounded(4, maxImports, "imports")
	if err != nil {
		return err
	}
	m.Imports = make([]Import, 0, n)
	for range n {
		var im Import
		if im.Module, err = r.name("import module"); err != nil {
			return err
		}
		if im.Name, err = r.name("import name"); err != nil {
			return err
		}
		if err := m.importDesc(r, &im); err != nil {
			return err
		}
		m.Imports = append(m.Imports, im)
	}
	return nil
}

func (m *Module) importDesc(r *reader, im *Import) error {
	at := r.pos
	kind, err := r.byte("import kind")
	if err != nil {
		return err
	}
	im.Kind = ExternKind(kind)
	switch im.Kind {
	case KindFunc:
		i, err := m.typeIndex(r)
		if err != nil {
			return err
		}
		im.Func = &m.Types[i]
		m.ImportedFuncs++
	case KindTable:
		t, err := r.table()
		if err != nil {
			return err
		}
		im.Limits, im.Elem = t.Limits, t.Elem
	case KindMemory:
		im.Limits, err = r.limits("memory limits")
	case KindGlobal:
		if _, err = r.valueType("global type"); err != nil {
			return err
		}
		_, err = r.mutability()
	case KindTag:
		if _, err = r.byte("tag attribute"); err != nil {
			return err
		}
		_, err = m.typeIndex(r)
	default:
		return failAt(at, ErrMalformed, "import kind %d", kind)
	}
	return err
}

// globals counts those that a module defines. What initialises them is not read.
func (r *reader) globals() (int, error) {
	if err := r.most(r.remaining(), maxGlobalBytes, "bytes of globals"); err != nil {
		return 0, err
	}
	return r.bounded(3, maxGlobals, "globals")
}

func (r *reader) mutability() (bool, error) {
	at := r.pos
	c, err := r.byte("mutability")
	if err != nil {
		return false, err
	}
	if c > 1 {
		return false, failAt(at, ErrMalformed, "mutability %d", c)
	}
	return c == 1, nil
}

func (r *reader) table() (Table, error) {
	at := r.pos
	if at < r.end && r.b[at] == 0x40 {
		return Table{}, failAt(at, ErrUnsupported, "table with an initialiser")
	}
	elem, err := r.valueType("table element type")
	if err != nil {
		return Table{}, err
	}
	if elem != FuncRef && elem != ExternRef && elem != ExnRef {
		return Table{}, failAt(at, ErrMalformed, "table of %s", elem)
	}
	l, err := r.limits("table limits")
	return Table{Elem: elem, Limits: l}, err
}

func (m *Module) funcs(r *reader) error {
	n, err := r.bounded(1, maxFuncs, "functions")
	if err != nil {
		return err
	}
	m.Funcs = make([]uint32, n)
	for i := range m.Funcs {
		if m.Funcs[i], err = m.typeIndex(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) tables(r *reader) error {
	n, err := r.bounded(3, maxTables, "tables")
	if err != nil {
		return err
	}
	m.Tables = make([]Table, n)
	for i := range m.Tables {
		if m.Tables[i], err = r.table(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) memories(r *reader) error {
	n, err := r.count(2, "memories")
	if err != nil {
		return err
	}
	m.Memories = make([]Limits, n)
	for i := range m.Memories {
		if m.Memories[i], err = r.limits("memory limits"); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) exports(r *reader) error {
	n, err := r.bounded(3, maxExports, "exports")
	if err != nil {
		return err
	}
	m.Exports = make([]Export, 0, n)
	for range n {
		at := r.pos
		var ex Export
		if ex.Name, err = r.name("export name"); err != nil {
			return err
		}
		if _, twice := m.byName[ex.Name]; twice {
			return failAt(at, ErrMalformed, "export name is used twice")
		}
		kind, err := r.byte("export kind")
		if err != nil {
			return err
		}
		if kind > byte(KindTag) {
			return failAt(at, ErrMalformed, "export kind %d", kind)
		}
		ex.Kind = ExternKind(kind)
		if ex.Index, err = r.u32("export index"); err != nil {
			return err
		}
		m.byName[ex.Name] = len(m.Exports)
		m.Exports = append(m.Exports, ex)
	}
	return nil
}

func (m *Module) start(r *reader) error {
	i, err := r.u32("start function")
	m.Start = &i
	return err
}

// TypeOf returns the signature of a function, imports first, or nil when there is
// no function with that index.
func (m *Module) TypeOf(index uint32) *FuncType {
	switch n := int64(index) - int64(len(m.imported)); {
	case n < 0:
		return m.imported[index]
	case n < int64(len(m.Funcs)):
		return &m.Types[m.Funcs[n]]
	}
	return nil
}

// resolve checks the function indices that may point forward.
func (m *Module) resolve() error {
	m.imported = make([]*FuncType, 0, m.ImportedFuncs)
	for i := range m.Imports {
		if m.Imports[i].Kind == KindFunc {
			m.imported = append(m.imported, m.Imports[i].Func)
		}
	}
	for i := range m.Exports {
		ex := &m.Exports[i]
		if ex.Kind != KindFunc {
			continue
		}
		if ex.Func = m.TypeOf(ex.Index); ex.Func == nil {
			return failAt(m.Size, ErrMalformed, "export %d is function %d, which does not exist", i, ex.Index)
		}
	}
	if m.Start != nil && m.TypeOf(*m.Start) == nil {
		return failAt(m.Size, ErrMalformed, "the start function %d does not exist", *m.Start)
	}
	return nil
}
