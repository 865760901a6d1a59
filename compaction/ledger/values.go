package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds of the records of one result.
const (
	maxRecord  = 64 << 10 // bytes that are read as JSON
	maxFields  = 400      // values of one result
	maxValue   = 160      // bytes of a value
	recordDeep = 6
)

// records keeps the fields of records in the result of a tool, under the record that owns them: the one
// whose id is next to them, or else that of the call.
func (l *Ledger) records(n int, c *abi.LedgerCall, text string) {
	text = strings.TrimSpace(text)
	if len(text) > maxRecord || text == "" || text[0] != '{' && text[0] != '[' {
		return
	}
	v, ok := parseJSON(text)
	if !ok {
		return
	}
	w := recordWalk{l: l, m: n, left: maxFields}
	w.value(c.Owner, "", v, 0)
}

// recordWalk reads the records of one result.
type recordWalk struct {
	l    *Ledger
	m    int
	left int
}

// value reads a value that belongs to an owner under a key.
func (w *recordWalk) value(owner, key string, v any, depth int) {
	if depth > recordDeep || w.left <= 0 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(owner, key, v, depth)
	case []any:
		if text, ok := plainList(v); ok {
			w.set(owner, key, text)
			return
		}
		for i, e := range v {
			name := key
			if key != "" && len(v) > 1 {
				name += "." + strconv.Itoa(i+1)
			}
			w.value(owner, name, e, depth+1)
		}
	default:
		w.set(owner, key, scalar(v))
	}
}

// object reads a record, or a small part of one, which is kept on a line.
func (w *recordWalk) object(owner, key string, v map[string]any, depth int) {
	if owner != "" && key != "" {
		if text, ok := partOf(v, key); ok {
			w.set(owner, key, text)
			return
		}
	}
	if kind, id := identity(v); id != "" && owner != kind+" "+id {
		w.set(owner, key, kind+" "+id)
		owner, key = kind+" "+id, ""
	}
	for _, k := range slices.Sorted(maps.Keys(v)) {
		name := k
		if key != "" && isField(k) { // an id needs no name of the list that it is in
			name = key + "." + k
		}
		w.value(owner, cut(name, maxKey), v[k], depth+1)
	}
}

// partOf writes the fields of an object as "key value, key value", without those that its own key holds. It reports
// false for objects that are not small or hold others.
func partOf(v map[string]any, key string) (string, bool) {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(v)) {
		var s string
		switch v := v[k].(type) {
		case map[string]any:
			return "", false
		case []any:
			list, ok := plainList(v)
			if !ok && len(v) > 0 {
				return "", false
			}
			s = list
		default:
			s = scalar(v)
		}
		if s == "" || strings.Contains(key, s) && len(s) > 2 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k + " " + s)
		if b.Len() > maxValue {
			return "", false
		}
	}
	return b.String(), b.Len() > 0
}

// identity is the id of a record and what it is the id of: the field id, or else the first one that
// ends with _id or _number but is not that of the user, to whom most records refer.
func identity(v map[string]any) (kind, id string) {
	if s := scalar(v["id"]); s != "" {
		return "id", s
	}
	user := ""
	for _, k := range slices.Sorted(maps.Keys(v)) {
		name, ok := strings.CutSuffix(k, "_id")
		if !ok {
			name, ok = strings.CutSuffix(k, "_number")
		}
		s := scalar(v[k])
		if !ok || s == "" || len(s) > maxValue {
			continue
		}
		if name == "user" || name == "customer" {
			user = name + " " + s
			continue
		}
		return name, s
	}
	if user != "" {
		kind, id, _ = strings.Cut(user, " ")
	}
	return kind, id
}

// ownerOf is the record that the arguments of a call name.
func ownerOf(args map[string]any) string {
	if kind, id := identity(args); id != "" {
		return cut(kind+" "+id, maxKey)
	}
	return ""
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// plainList is a list of texts and numbers on one line.
func plainList(list []any) (string, bool) {
	var b strings.Builder
	for i, v := range list {
		s := scalar(v)
		if s == "" {
			return "", false
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s)
		if b.Len() > maxValue {
			break
		}
	}
	return b.String(), len(list) > 0
}

// set keeps a value, and the one that it replaces.
func (w *recordWalk) set(owner, key, value string) {
	if value == "" || key == "" || owner == "" || w.left <= 0 || strings.ContainsAny(value, "\n\r;") || len(owner) > maxKey {
		return
	}
	w.left--
	value = cut(value, maxValue)
	list := &w.l.s.Work.Values
	if i, ok := w.l.values[owner+"\x00"+key]; ok {
		v := &(*list)[i]
		if v.Value != value && v.Message != w.m {
			v.Before, v.Value = v.Value, strings.Clone(value)
		}
		v.Message = w.m
		return
	}
	if len(*list) >= maxValues {
		*list = append((*list)[:0], (*list)[maxValues/3:]...)
		w.l.index()
	}
	w.l.values[owner+"\x00"+key] = len(*list)
	*list = append(*list, abi.LedgerValue{Message: w.m, Owner: strings.Clone(owner), Key: strings.Clone(key), Value: strings.Clone(value)})
}
