package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
)

// Hash is the identity of an item: of what it means, not of how it is written.
type Hash [16]byte

// MarshalText writes it in hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	_, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))])
	return err
}

// HashOf is the hash of bytes.
func HashOf(parts ...[]byte) (h Hash) {
	d := sha256.New()
	for _, p := range parts {
		d.Write(p)
		d.Write([]byte{0})
	}
	copy(h[:], d.Sum(nil))
	return h
}

// seed is that of all digests: they are compared in one process.
var seed = maphash.MakeSeed() //nolint:gochecknoglobals // as above

// DigestOf is a quick hash of bytes, for one process.
func DigestOf(parts ...[]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range parts {
		_, _ = h.Write(p)
	}
	return h.Sum64()
}

// Digest is a quick hash of the bytes of an item without its cache markers, for one process. A message that is a string and one that is a list
// with this text alone have the same: providers read them alike, and Claude Code writes a message first as a list, then as a string.
func (r *Request) Digest(i int) uint64 {
	it := &r.Items[i]
	if it.digest == 0 {
		it.digest = r.digest(it)
	}
	return it.digest
}

func (r *Request) digest(it *Item) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if text, ok := r.onlyText(it); ok {
		_, _ = h.WriteString(it.Role)
		_ = h.WriteByte(0)
		_, _ = h.Write(text.Of(r.Body))
		return h.Sum64()
	}
	from := it.From
	for _, b := range it.Blocks {
		if b.Mark.Exists() {
			cut := Cut(r.Body, b.Mark).At
			_, _ = h.Write(r.Body[from:cut.From])
			from = cut.To
		}
	}
	_, _ = h.Write(r.Body[from:it.To])
	return h.Sum64()
}

// onlyText returns the JSON string of a message that has a role and one text and nothing else but a cache marker, written without spaces.
func (r *Request) onlyText(it *Item) (Span, bool) {
	if len(it.Blocks) != 1 || it.Type != "" || it.To-it.From-(it.Content.To-it.Content.From) != len(`{"role":"","content":}`)+len(it.Role) {
		return Span{}, false
	}
	bl := it.Blocks[0]
	if it.Plain {
		return bl.Value, bl.Value.Exists()
	}
	if bl.Type != TypeText || !bl.Value.Exists() || r.Body[bl.Value.From] != '"' {
		return Span{}, false
	}
	rest := bl.To - bl.From - (bl.Value.To - bl.Value.From)
	if bl.Mark.Exists() {
		cut := Cut(r.Body, bl.Mark).At
		rest -= cut.To - cut.From
	}
	return bl.Value, rest == len(`{"type":"text","text":}`)
}

// Canonical is the hash of what an item means. Clients write the same item anew, with other keys first, other escapes
// and moved markers.
func (r *Request) Canonical(i int) Hash {
	it := &r.Items[i]
	var v map[string]any
	if json.Unmarshal(it.Of(r.Body), &v) != nil {
		return HashOf(it.Of(r.Body))
	}
	out := map[string]any{}
	switch r.Protocol {
	case Messages:
		out["role"], out["content"] = v["role"], content(v["content"])
	case Chat:
		for name, field := range v {
			if field != nil && name != "cache_control" {
				out[name] = field
			}
		}
		out["content"] = content(v["content"])
	case Responses:
		for name, field := range v {
			switch {
			case field == nil, name == "id", name == "status", name == "metadata", strings.HasPrefix(name, "internal_"):
			case name == "arguments":
				out[name] = parsed(field)
			case name == "content":
				out[name] = content(field)
			default:
				out[name] = field
			}
		}
		if v["type"] == nil {
			out["type"] = "message"
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return HashOf(it.Of(r.Body))
	}
	return HashOf(raw)
}

// content makes a string a list with one text block, leaves markers out and orders results by their ids.
func content(v any) any {
	if s, ok := v.(string); ok {
		return []any{map[string]any{"type": "text", "text": s}}
	}
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, 0, len(list))
	for _, e := range list {
		out = append(out, meaning(e))
	}
	slices.SortStableFunc(out, func(a, b any) int {
		if resultID(a) == "" || resultID(b) == "" {
			return 0
		}
		return cmp.Compare(resultID(a), resultID(b))
	})
	return out
}

// meaning is a block without markers and without what is not its meaning.
func meaning(e any) any {
	m, ok := e.(map[string]any)
	if !ok {
		return e
	}
	clean := make(map[string]any, len(m))
	for name, field := range m {
		if name != "cache_control" && name != "prompt_cache_breakpoint" && field != nil {
			clean[name] = field
		}
	}
	switch clean["type"] {
	case "thinking":
		if s, ok := clean["signature"].(string); ok && s != "" {
			return map[string]any{"type": "thinking", "signature": s}
		}
	case "tool_result":
		clean["content"] = content(clean["content"])
	}
	return clean
}

// resultID is that of the call of a result.
func resultID(v any) string {
	m, ok := v.(map[string]any)
	if !ok || m["type"] != "tool_result" {
		return ""
	}
	s, _ := m["tool_use_id"].(string)
	return s
}

// parsed is JSON in a string as the value that it holds.
func parsed(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	var inner any
	if json.Unmarshal([]byte(s), &inner) != nil {
		return s
	}
	return map[string]any{"json": inner}
}

// ThinkingKey is the key of an item that is thinking alone.
const ThinkingKey = "thinking"

// Key names an answer of a model, as the client has it: by the ids of its calls, else by its text.
func (r *Request) Key(i int) string {
	var ids []string
	var text strings.Builder
	for _, b := range r.Items[i].Blocks {
		switch b.Type {
		case TypeCall:
			ids = append(ids, b.ID)
		case TypeText:
			text.WriteString(String(r.Body, b.Value))
		case TypeThinking:
			if r.Protocol == Responses {
				return ThinkingKey
			}
		}
	}
	return key(ids, text.String())
}

// AnswerKeys names blocks of an answer by the items that they become.
func AnswerKeys(p Protocol, blocks []Out) []string {
	if p != Responses {
		return []string{AnswerKey(blocks)}
	}
	var out []string
	for i := range blocks {
		if blocks[i].Type == TypeThinking {
			out = append(out, ThinkingKey)
			continue
		}
		out = append(out, AnswerKey(blocks[i:i+1]))
	}
	return out
}

func key(ids []string, text string) string {
	if len(ids) > 0 {
		return "calls:" + strings.Join(ids, ",")
	}
	h := HashOf([]byte(strings.TrimSpace(text)))
	return "text:" + hex.EncodeToString(h[:])
}
