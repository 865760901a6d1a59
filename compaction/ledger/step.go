package ledger

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// isFinish reports tools with which an agent ends its turn.
func isFinish(name string) bool {
	switch strings.ToLower(name) {
	case "finish", "submit", "attempt_completion", "complete_task", "done", "respond", "final_answer", "stop":
		return true
	}
	return false
}

// stepText is a call in one line.
func stepText(c *abi.LedgerCall) string {
	text := c.Tool
	switch {
	case kind(c.Kind) == kindPatch:
		text += " " + patched(c.Text)
	case kind(c.Kind) == kindTask:
		text += " #" + strings.Replace(c.Text, "\n", " ", 1)
	case len(c.Paths) > 0:
		text += " " + c.Paths[0]
	case c.Text != "":
		text += " " + firstLine(c.Text)
	}
	most := maxLine
	if kind(c.Kind) == kindOther {
		most = maxStep
	}
	return clip(strings.TrimSpace(text), most)
}

// patched lists the files of a patch.
func patched(text string) string {
	var names []string
	for i, f := range patchFiles(text) {
		if i == 6 {
			names = append(names, "…")
			break
		}
		names = append(names, f.path)
	}
	return strings.Join(names, " ")
}

// fieldList writes arguments as "key=value key=value".
type fieldList struct {
	b    strings.Builder
	most int
}

func fields(args map[string]any, n int) string {
	f := fieldList{most: n}
	f.walk("", args, 0)
	return f.b.String()
}

func (f *fieldList) walk(key string, v any, depth int) {
	if depth > maxDepth/2 || f.b.Len() >= f.most {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.walk(cut(name, 60), v[name], depth+1)
		}
	case []any:
		if text, ok := plainList(v); ok {
			f.write(key, text)
			return
		}
		if text, head, ok := rows(v); ok {
			f.row(key+head, text)
			return
		}
		for _, e := range v {
			f.walk(key, e, depth+1)
		}
	default:
		f.write(key, scalar(v))
	}
}

func (f *fieldList) write(key, v string) {
	f.put(key, strings.Join(strings.Fields(cut(v, maxValue)), " "))
}

func (f *fieldList) put(key, v string) {
	if v == "" || f.b.Len()+len(key)+len(v)+2 > f.most {
		return
	}
	if f.b.Len() > 0 {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(key + "=" + v)
}

// row writes a list of rows, which may be longer than one value.
func (f *fieldList) row(key, v string) {
	if f.b.Len()+len(key)+len(v)+2 > f.most {
		v = cut(v, max(0, f.most-f.b.Len()-len(key)-2))
		v = v[:max(0, strings.LastIndex(v, ", "))]
	}
	f.put(key, v)
}

// rows writes a list of objects with the same plain fields: the names of the fields once, and a row for each object.
func rows(list []any) (text, head string, ok bool) {
	var b strings.Builder
	var keys []string
	for i, e := range list {
		v, isObject := e.(map[string]any)
		if !isObject || len(v) == 0 || i > 0 && len(v) != len(keys) {
			return "", "", false
		}
		if i == 0 {
			keys = slices.Sorted(maps.Keys(v))
		} else {
			b.WriteString(",")
		}
		for _, k := range keys {
			s := strings.Join(strings.Fields(cut(scalar(v[k]), maxValue)), " ")
			if s == "" {
				return "", "", false
			}
			if b.Len() > 0 {
				b.WriteString(" ")
			}
			b.WriteString(s)
		}
	}
	return b.String(), "(" + strings.Join(keys, ",") + ")", len(list) > 0
}

// step appends to the latest events.
func (l *Ledger) step(s abi.LedgerStep) { l.s.Steps = appendBounded(l.s.Steps, s, maxSteps) }
