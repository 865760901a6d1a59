package hook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
)

// maxTexts is how many texts a result may have that plugins look at.
const maxTexts = 50_000

// errTexts is a result with more texts than that.
var errTexts = errors.New("the result has more texts than can be shown to plugins")

// result is a tool's result as plugins see it: each of its texts is a block of content, and behind them each name of a field and each number that
// could be a secret, and each text in base64. Rebuilt keeps the shape.
type result struct {
	value any
	texts []*text
	main  int // index of the text that holds what the tool printed
	// whole is the one text that replaces everything, if not nil.
	whole *string
}

// text is one string of a result, a number or the name of a field.
type text struct {
	path []string
	was  string
	now  string
	// hidden texts are not shown, and emptied when the whole result is replaced.
	hidden bool
	// behind are names, numbers and texts in base64; the path of a name ends with it.
	name, behind, base64 bool
}

// readResult finds the texts of a result. The fields that the tool declares come first.
func readResult(value any, declared []string) (*result, error) {
	r := &result{value: value}
	if err := r.collect(value, nil); err != nil {
		return nil, err
	}
	if value == nil {
		r.texts = append(r.texts, &text{})
	}
	rank := func(t *text) int {
		if t.behind {
			return len(declared) + 1
		}
		if i := slices.Index(declared, strings.Join(t.path, ".")); i >= 0 {
			return i
		}
		return len(declared)
	}
	slices.SortStableFunc(r.texts, func(a, b *text) int { return rank(a) - rank(b) })
	for i, t := range r.texts {
		if len(declared) == 0 && !t.hidden && !t.behind && len(t.was) > len(r.texts[r.main].was) {
			r.main = i
		}
	}
	return r, nil
}

func (r *result) collect(v any, path []string) error {
	switch t := v.(type) {
	case string:
		return r.string(t, path)
	case json.Number:
		if len(t) >= secretDigits {
			return r.add(&text{path: path, was: t.String(), behind: true})
		}
	case []any:
		for i := range t {
			if err := r.collect(t[i], append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			if err := r.field(t[k], append(path, k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// string adds a text, and the one that it may be the base64 of.
func (r *result) string(s string, path []string) error {
	err := r.add(&text{path: path, was: s, hidden: structural(path, s)})
	if err != nil || len(path) == 0 || !slices.Contains([]string{"blob", "data", "base64"}, path[len(path)-1]) {
		return err
	}
	if _, inner, ok := dynamic.Base64(s, ""); ok {
		return r.add(&text{path: path, was: inner, behind: true, base64: true})
	}
	return nil
}

// field finds the texts of a field of an object, whose name ends the path.
func (r *result) field(v any, path []string) error {
	if name := path[len(path)-1]; !fieldName(name) {
		if err := r.add(&text{path: path, was: name, name: true, behind: true}); err != nil {
			return err
		}
	}
	return r.collect(v, path)
}

func (r *result) add(t *text) error {
	if len(r.texts) == maxTexts {
		return errTexts
	}
	t.path, t.now = slices.Clone(t.path), t.was
	r.texts = append(r.texts, t)
	return nil
}

// secretDigits is from how many characters on a number could be a secret.
const secretDigits = 6

// fieldName reports whether the name of a field can be no more than that: a few words.
func fieldName(s string) bool {
	return len(s) <= 32 && strings.IndexFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' }) < 0
}

// structural reports whether a string is part of the shape, not of what the tool answered.
func structural(path []string, s string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[len(path)-1] {
	case "type", "kind", "mode", "role", "status", "encoding", "language", "resultType":
		return label(s)
	default:
		return false
	}
}

// label reports whether a text can be one of a few words, such as in_progress, utf-8 or SUCCESS. What could be a key or a token is none.
func label(s string) bool {
	digits, upper := 0, false
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return len(s) <= 32 && digits <= 3 && (digits == 0 || !upper)
}

// content is what plugins get to see.
func (r *result) content() []abi.ContentBlock {
	var out []abi.ContentBlock
	for _, t := range r.texts {
		if !t.hidden {
			out = append(out, abi.Text(t.was))
		}
	}
	return out
}

// answered is what the agent gets to see.
func (r *result) answered() string {
	var out []string
	for _, t := range r.shown() {
		out = append(out, t.now)
	}
	return strings.Join(out, "\n")
}

// replace takes over what plugins made of the content. With as many texts as there were each one keeps its place; else
// all of it goes to the main text and the others become empty.
func (r *result) replace(content []abi.ContentBlock) {
	var texts []string
	for i := range content {
		if content[i].Type == abi.BlockText {
			texts = append(texts, content[i].Text)
		}
	}
	shown := r.shown()
	if len(texts) == len(shown) {
		for i, t := range shown {
			t.now = texts[i]
		}
		return
	}
	r.withhold(strings.Join(texts, "\n"))
}

// withhold replaces everything that the tool answered by one text.
func (r *result) withhold(all string) {
	r.whole = &all
	for i, t := range r.texts {
		switch {
		case i == r.main:
			t.now = all
		case !t.hidden:
			t.now = ""
		}
	}
}

// exitStatus is the last line of a wrapped command that failed.
var exitStatus = regexp.MustCompile(`(?:^|\n)(exit status \d{1,3})\s*$`)

// keepStatus puts the exit status of a wrapped command behind what plugins made of its output: without it a failure reads as a success.
func (r *result) keepStatus() {
	t := r.texts[r.main]
	if m := exitStatus.FindStringSubmatch(t.was); m != nil && !exitStatus.MatchString(t.now) {
		t.now = strings.TrimPrefix(t.now+"\n"+m[1], "\n")
	}
}

func (r *result) shown() (out []*text) {
	for _, t := range r.texts {
		if !t.hidden {
			out = append(out, t)
		}
	}
	return out
}

func (r *result) changed() bool {
	return slices.ContainsFunc(r.texts, func(t *text) bool { return t.was != t.now })
}

// rebuilt is the result in the tool's own shape, with the texts as they are now. In a result of an MCP server that is replaced as a
// whole nothing structured is left, which agents would show in place of the text: without what its schema promises it is an error.
func (r *result) rebuilt() any {
	out := copied(r.value)
	if m, ok := out.(map[string]any); ok && r.whole != nil && m["structuredContent"] != nil {
		delete(m, "structuredContent")
		m["content"], m["isError"] = []any{map[string]any{"type": "text", "text": *r.whole}}, true
		return m
	}
	var names []*text
	for _, t := range r.texts {
		switch {
		case t.was == t.now:
		case t.name:
			names = append(names, t)
		case t.base64:
			out = put(out, t.path, base64.StdEncoding.EncodeToString([]byte(t.now)))
		default:
			out = put(out, t.path, t.now)
		}
	}
	for _, t := range slices.Backward(names) { // those within before those around them
		rename(out, t.path, t.now)
	}
	return out
}

func copied(v any) any {
	switch t := v.(type) {
	case []any:
		out := make([]any, len(t))
		for i := range t {
			out[i] = copied(t[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k := range t {
			out[k] = copied(t[k])
		}
		return out
	default:
		return v
	}
}

// rename gives a field another name, which is no other one's.
func rename(v any, path []string, name string) {
	for ; len(path) > 1; path = path[1:] {
		switch t := v.(type) {
		case []any:
			i, _ := strconv.Atoi(path[0])
			v = t[i]
		case map[string]any:
			v = t[path[0]]
		}
	}
	if m, ok := v.(map[string]any); ok {
		field, base := m[path[0]], name
		delete(m, path[0])
		for i := 2; ; i++ {
			if _, taken := m[name]; !taken {
				m[name] = field
				return
			}
			name = base + "_" + strconv.Itoa(i)
		}
	}
}

func put(v any, path []string, s string) any {
	if len(path) == 0 {
		return s
	}
	switch t := v.(type) {
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(t) {
			t[i] = put(t[i], path[1:], s)
		}
	case map[string]any:
		t[path[0]] = put(t[path[0]], path[1:], s)
	}
	return v
}

// plainText is the result as one text, as a model would read it: what is structured first.
func plainText(v any) string {
	object, ok := v.(map[string]any)
	if !ok {
		if s, ok := v.(string); ok {
			return s
		}
	} else if s := object["structuredContent"]; s != nil {
		v = s
	} else if blocks, ok := object["content"].([]any); ok {
		if s, ok := blockText(blocks); ok {
			return s
		}
	} else if s, ok := object["textResultForLlm"].(string); ok { // Copilot CLI
		return s
	} else if s, ok := object["llmContent"].(string); ok { // Gemini CLI, Qwen Code
		return s
	}
	out, err := encodeJSON(v)
	if err != nil {
		return "[the result cannot be shown]"
	}
	return string(out)
}

// blockText joins blocks if all are texts.
func blockText(blocks []any) (string, bool) {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		block, _ := b.(map[string]any)
		s, ok := block["text"].(string)
		if !ok {
			return "", false
		}
		texts[i] = s
	}
	return strings.Join(texts, "\n"), true
}
