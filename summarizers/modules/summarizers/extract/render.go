package extract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

const (
	separator = "; "
	lineMax   = 700
)

// render writes the units that were taken, section by section, each in the order
// of the conversation. The result is never longer than limit bytes.
func render(units []unit, leftOut, limit int) string {
	var out []byte
	for s := secGoal; s < sectionCount; s++ {
		var list []*unit
		for i := range units {
			if units[i].taken && units[i].sec == s {
				list = append(list, &units[i])
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *unit) int { return cmp.Compare(a.ord, b.ord) })
		if len(out) > 0 {
			out = append(out, '\n')
		}
		if limit >= tinyBytes {
			out = append(out, s.heading()...)
			out = append(out, '\n')
		}
		switch {
		case s == secIdents:
			out = appendValues(out, list)
		case s.inline():
			out = appendInline(out, list)
		case s == secPassages, s == secNotes:
			out = appendPassages(out, list, limit < tinyBytes)
		default:
			for _, u := range list {
				out = append(append(append(out, "- "...), u.text...), '\n')
			}
		}
	}
	if leftOut > 0 {
		out = append(out, leftOutPrefix+strconv.Itoa(leftOut)+" earlier pieces)\n"...)
	}
	return fit(string(out), limit)
}

// fit cuts whole lines from the end, then characters.
func fit(s string, limit int) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= limit {
		return s
	}
	s = s[:runeCut(s, limit)]
	if n := strings.LastIndexAny(s, "\n|"); n > limit*3/4 {
		s = s[:n]
	}
	return strings.TrimRight(s, "\n |")
}

func appendInline(out []byte, list []*unit) []byte {
	for i, u := range list {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(out, u.text...)
	}
	return append(out, '\n')
}

// appendValues groups "key: value" by key, keys in order of appearance.
func appendValues(out []byte, list []*unit) []byte {
	var keys []string
	values := map[string][]string{}
	for _, u := range list {
		k, v, ok := strings.Cut(u.text, ": ")
		if !ok {
			k, v = "", u.text
		}
		if _, known := values[k]; !known {
			keys = append(keys, k)
		}
		values[k] = append(values[k], v)
	}
	for _, k := range keys {
		out = append(out, "- "...)
		if k != "" {
			out = append(append(out, k...), ": "...)
		}
		out = append(append(out, strings.Join(values[k], ", ")...), '\n')
	}
	return out
}

// appendPassages joins what one speaker said on one line, up to a length.
func appendPassages(out []byte, list []*unit, plain bool) []byte {
	by, start := "", 0
	for i, u := range list {
		if u.by != by || len(out)-start > lineMax {
			if i > 0 {
				out = append(out, '\n')
			}
			start = len(out)
			if !plain {
				out = append(out, "- "...)
			}
			if u.by != by && !plain {
				out = append(append(append(out, '['), u.by...), "] "...)
			}
			by = u.by
		} else if list[i-1].ends() {
			out = append(out, ' ')
		} else {
			out = append(out, separator...)
		}
		out = append(out, u.text...)
	}
	return append(out, '\n')
}
