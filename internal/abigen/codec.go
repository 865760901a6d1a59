package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"slices"
)

// writer collects generated code.
type writer struct{ bytes.Buffer }

func (w *writer) line(text string, args ...any) { fmt.Fprintf(&w.Buffer, text+"\n", args...) }

// renderCodec returns the methods that write and read each struct.
func (p *pkg) renderCodec() ([]byte, error) {
	var w writer
	w.WriteString(header)
	lists := map[string]bool{}
	for _, s := range p.structs {
		p.encodeStruct(&w, s)
		p.decodeStruct(&w, s)
		if p.views[s.name] {
			p.viewStruct(&w, s)
		}
		for _, f := range s.fields {
			if f.kind == list && p.isStruct(f.elem) {
				lists[f.elem] = true
			}
		}
	}
	for _, elem := range slices.Sorted(maps.Keys(lists)) {
		listCodec(&w, elem)
	}
	out, err := format.Source(w.Bytes())
	if err != nil {
		return nil, fmt.Errorf("abigen: codec: %w", err)
	}
	return out, nil
}

func (p *pkg) encodeStruct(w *writer, s *structType) {
	w.line("\n// MarshalTo writes v.\nfunc (v *%s) MarshalTo(e *Encoder) {", s.name)
	fixed := 0
	for _, f := range s.fields {
		if !f.omitEmpty {
			fixed++
		}
	}
	if fixed == len(s.fields) {
		w.line("e.OpenMap(%d)", fixed)
	} else {
		w.line("n := %d", fixed)
		for _, f := range s.fields {
			if f.omitEmpty {
				w.line("if %s { n++ }", f.present())
			}
		}
		w.line("e.OpenMap(n)")
	}
	for _, f := range s.fields {
		if f.omitEmpty {
			w.line("if %s {", f.present())
		}
		w.line(`e.raw("\x%02x%s")`, 0xa0|len(f.key), f.key)
		p.encodeField(w, f)
		if f.omitEmpty {
			w.line("}")
		}
	}
	w.line("e.Close()\n}")
}

// present is the condition under which an omitempty field is written, the same
// as encoding/json's.
func (f *field) present() string {
	switch f.kind {
	case pointer, dynamic:
		return "v." + f.name + " != nil"
	case list, object, lazy:
		return "len(v." + f.name + ") > 0"
	case scalar:
	}
	switch f.elem {
	case "bool":
		return "v." + f.name
	case "int", "int64", "float64":
		return "v." + f.name + " != 0"
	}
	return "v." + f.name + ` != ""`
}

func (p *pkg) encodeField(w *writer, f *field) {
	v := "v." + f.name
	switch f.kind {
	case dynamic:
		w.line("e.Value(%s)", v)
	case object:
		w.line("e.anyMap(%s)", v)
	case list:
		w.line("e.%sList(%s)", lower(f.elem), v)
	case lazy:
		w.line("%s.marshalTo(e)", v)
	case scalar:
		w.line("%s", p.encodeScalar(f.elem, v))
	case pointer:
		if !f.omitEmpty {
			w.line("if %s == nil { e.Nil() } else {", v)
		}
		if p.isStruct(f.elem) {
			w.line("%s.MarshalTo(e)", v)
		} else {
			w.line("%s", p.encodeScalar(f.elem, "*"+v))
		}
		if !f.omitEmpty {
			w.line("}")
		}
	}
}

func (p *pkg) encodeScalar(elem, v string) string {
	switch {
	case elem == "string":
		return "e.Str(" + v + ")"
	case elem == "bool":
		return "e.Bool(" + v + ")"
	case elem == "int":
		return "e.Int(int64(" + v + "))"
	case elem == "int64":
		return "e.Int(" + v + ")"
	case elem == "float64":
		return "e.Float(" + v + ")"
	case p.strings[elem]:
		return "e.Str(string(" + v + "))"
	}
	return v + ".MarshalTo(e)"
}

func (p *pkg) isStruct(name string) bool {
	return slices.ContainsFunc(p.structs, func(s *structType) bool { return s.name == name })
}

func (p *pkg) decodeStruct(w *writer, s *structType) {
	w.line("\n// UnmarshalFrom replaces v by what it reads.\nfunc (v *%s) UnmarshalFrom(d *Decoder) {", s.name)
	w.line("*v = %s{}\nn, ok := d.OpenMap()\nif !ok { return }\nvar seen uint64", s.name)
	for _, f := range s.fields {
		if f.kind == lazy {
			w.line("%s := \"\"", indexOf(f.elem))
		}
	}
	w.line("for range n {\nswitch d.Key() {")
	for i, f := range s.fields {
		w.line("case %q:\nd.once(&seen, 1<<%d)", f.key, i)
		p.decodeField(w, f, "v."+f.name)
		if f.kind == lazy {
			w.line("case Field%sIndex:\n%s = d.%[2]s()", f.elem, indexOf(f.elem))
		}
	}
	w.line("default:\nd.Skip()\n}\nif d.err != nil { return }\n}\nd.Close()")
	for i, f := range s.fields {
		if f.kind == lazy {
			w.line("if seen&(1<<%d) == 0 {\nv.%s = d.unsent%s(%s)\n}", i, f.name, viewsOf(f.elem), indexOf(f.elem))
		}
	}
	w.line("}")
}

// decodeField writes the reading of a field into the variable v, which is zero.
func (p *pkg) decodeField(w *writer, f *field, v string) {
	switch f.kind {
	case dynamic:
		w.line("%s = d.Value()", v)
	case object:
		w.line("%s = d.anyMap()", v)
	case list:
		w.line("%s = d.%sList()", v, lower(f.elem))
	case lazy:
		w.line("%s = d.%s(%s)", v, lower(viewsOf(f.elem)), indexOf(f.elem))
	case scalar:
		if p.isStruct(f.elem) {
			w.line("%s.UnmarshalFrom(d)", v)
		} else {
			w.line("%s = %s", v, p.decodeScalar(f.elem))
		}
	case pointer:
		w.line("if !d.Null() {")
		if p.isStruct(f.elem) {
			w.line("%s = new(%s)\n%s.UnmarshalFrom(d)", v, f.elem, v)
		} else {
			w.line("to := %s\n%s = &to", p.decodeScalar(f.elem), v)
		}
		w.line("}")
	}
}

// viewStruct writes one method for each field of a struct that is read lazily.
func (p *pkg) viewStruct(w *writer, s *structType) {
	for _, f := range s.fields {
		text := f.kind == scalar && (f.elem == "string" || p.strings[f.elem])
		if text && f.key == "role" {
			continue // the index says it
		}
		w.line("\n// %s reads the field of [%s] with that name.", f.name, s.name)
		w.line("func (v %s) %s() %s {", viewOf(s.name), f.name, f.typeText())
		w.line("if m := v.given(); m != nil { return m.%s }", f.name)
		if text {
			w.line("return %s(v.str(%q))\n}", f.elem, f.key)
			continue
		}
		w.line("var x %s", f.typeText())
		w.line("d := v.decoder()\nif v.find(&d, %q) {", f.key)
		p.decodeField(w, f, "x")
		w.line("v.keep(d.err)\n}\nreturn x\n}")
	}
}

// indexOf is the name of the index of a lazy list of elem, and of its reader.
func indexOf(elem string) string { return lower(elem) + "Index" }

// typeText is the type of the field in Go.
func (f *field) typeText() string {
	switch f.kind {
	case pointer:
		return "*" + f.elem
	case list:
		return "[]" + f.elem
	case lazy:
		return viewsOf(f.elem)
	case dynamic:
		return "any"
	case object:
		return "map[string]any"
	case scalar:
	}
	return f.elem
}

func (p *pkg) decodeScalar(elem string) string {
	switch elem {
	case "string":
		return "d.Str()"
	case "bool":
		return "d.Bool()"
	case "int":
		return "d.int()"
	case "int64":
		return "d.Int()"
	case "float64":
		return "d.Float()"
	}
	return elem + "(d.Str())"
}

func listCodec(w *writer, elem string) {
	name := lower(elem)
	w.line("\nfunc (e *Encoder) %sList(v []%s) {", name, elem)
	w.line("if v == nil { e.Nil(); return }\ne.OpenArray(len(v))")
	w.line("for i := range v { v[i].MarshalTo(e) }\ne.Close()\n}")
	w.line("\nfunc (d *Decoder) %sList() []%s {", name, elem)
	w.line("n, ok := d.OpenArray()\nif !ok { return nil }\nlist := make([]%s, n)", elem)
	w.line("for i := range list {\nlist[i].UnmarshalFrom(d)\nif d.err != nil { return nil }\n}\nd.Close()\nreturn list\n}")
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }
