package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// Name is the name of the tool.
const Name = "recall"

// maxPage is how many bytes of an answer there are at once, maxHits how many messages a search finds.
const (
	maxPage = 8192
	maxHits = 50
	around  = 160 // bytes that are shown before and behind a word that was found
)

// Tool reads the log of one thread.
type Tool struct {
	// Log returns the messages of the thread, from the first one on.
	Log func(ctx context.Context) ([]abi.Message, error)
}

// Tools lists the one tool.
func (Tool) Tools() []abi.Tool {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	return []abi.Tool{{
		Name: Name, Kind: abi.ToolRead,
		Description: "Read earlier messages of this conversation word for word, which a summary replaced or which are shown cut: by their numbers, or by words in them.",
		Parameters: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"id":     text("a message number of the summary such as m12, or a range such as m12-m20"),
				"query":  text("words; messages that hold most of them are listed, with id only those of the range"),
				"offset": map[string]any{"type": "integer", "minimum": int64(0), "description": "in bytes, to continue an answer"},
			},
		},
	}}
}

// CallTool answers a call.
func (t Tool) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if call.Name != Name {
		return abi.ToolResult{}, fmt.Errorf("recall: tool %.80q not found", call.Name)
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess}
	args, _ := call.Arguments.(map[string]any)
	id, _ := args["id"].(string)
	query, _ := args["query"].(string)
	log, err := t.Log(ctx)
	if err != nil {
		return abi.ToolResult{}, fmt.Errorf("recall: %w", err)
	}
	text, err := answer(log, strings.TrimSpace(id), query)
	if err != nil {
		result.Status, result.Message = abi.ToolError, err.Error()
		return result, nil //nolint:nilerr // it is reported to the model
	}
	result.Content = []abi.ContentBlock{abi.Text(page(text, offset(args["offset"])))}
	return result, nil
}

// answer is the whole answer.
func answer(log []abi.Message, id, query string) (string, error) {
	from, to, err := span(id, log)
	if err != nil {
		return "", err
	}
	if words := strings.Fields(strings.ToLower(query)); len(words) > 0 {
		return search(log, from, to, words), nil
	}
	if id == "" {
		return "", errors.New("invalid arguments: name a message with id, such as m12 or m12-m20, or words with query")
	}
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(whole(&log[i], i+1))
	}
	return b.String(), nil
}

// span reads a number, a range of them, or the id of a message; nothing is the whole log.
func span(id string, log []abi.Message) (from, to int, err error) {
	if id == "" {
		return 0, len(log), nil
	}
	if i := slices.IndexFunc(log, func(m abi.Message) bool { return m.ID == id }); i >= 0 {
		return i, i + 1, nil
	}
	first, last, ranged := strings.Cut(id, "-")
	if !ranged {
		last = first
	}
	from, err = number(first)
	if err == nil {
		to, err = number(last)
	}
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("invalid id %.80q: write a message number such as m12, or a range such as m12-m20", id)
	case from < 1 || from > to || from > len(log):
		return 0, 0, fmt.Errorf("id %.80q: the conversation has the messages m1 to m%d", id, len(log))
	}
	return from - 1, min(to, len(log)), nil
}

func number(s string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(strings.ToLower(s)), "m"))
}

// whole is a message as text.
func whole(m *abi.Message, n int) string {
	return fmt.Sprintf("[m%d %s]\n%s\n", n, m.Role, strings.TrimSpace(body(m)))
}

// body is the text of a message and its calls.
func body(m *abi.Message) string {
	var b strings.Builder
	for i := range m.Content {
		switch c := &m.Content[i]; c.Type {
		case abi.BlockText:
			b.WriteString(c.Text + "\n")
		case abi.BlockThinking:
		default:
			b.WriteString("[" + string(c.Type) + "]\n")
		}
	}
	for _, c := range m.ToolCalls {
		arguments, err := json.Marshal(c.Arguments)
		if err != nil {
			arguments = []byte("?")
		}
		b.WriteString(c.Name + " " + string(arguments) + "\n")
	}
	if b.Len() == 0 {
		return "[nothing, or no longer stored]"
	}
	return b.String()
}

// hit is a message that was found.
type hit struct {
	at, words int
	text      string
}

// search lists the messages that have most of the words, those with more of them first, then the newest. Answers
// of this tool are not found again.
func search(log []abi.Message, from, to int, words []string) string {
	own := map[string]bool{}
	var hits []hit
	for i := from; i < to; i++ {
		for _, c := range log[i].ToolCalls {
			own[c.ID] = own[c.ID] || c.Name == Name
		}
		if log[i].Role == abi.RoleTool && own[log[i].ToolCallID] {
			continue
		}
		text := body(&log[i])
		if found, at := find(strings.ToLower(text), words); found*2 > len(words) {
			hits = append(hits, hit{at: i + 1, words: found, text: excerpt(text, min(at, len(text)))})
		}
	}
	if len(hits) == 0 {
		return "No message holds these words. Try fewer or other ones.\n"
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Or(b.words-a.words, b.at-a.at) })
	var b strings.Builder
	for i, h := range hits {
		if i == maxHits {
			fmt.Fprintf(&b, "and %d more messages; add a word\n", len(hits)-i)
			break
		}
		fmt.Fprintf(&b, "[m%d %s] %s\n", h.at, log[h.at-1].Role, h.text)
	}
	return b.String()
}

// find counts the words that a text in lower case holds, and returns where the first one is.
func find(low string, words []string) (found, at int) {
	at = len(low)
	for _, w := range words {
		if k := strings.Index(low, w); k >= 0 {
			found++
			at = min(at, k)
		}
	}
	return found, at
}

// excerpt is what stands around a place, in one line.
func excerpt(text string, at int) string {
	from, to := max(0, at-around), min(len(text), at+around)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := strings.Join(strings.Fields(text[from:to]), " ")
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}

// page is a part of an answer, and how to continue.
func page(text string, from int) string {
	from = min(from, len(text))
	to := min(len(text), from+maxPage)
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	out := strings.ToValidUTF8(text[from:to], "\uFFFD")
	if to < len(text) {
		return fmt.Sprintf("%s\n[bytes %d to %d of %d; continue with offset %d]", out, from, to, len(text), to)
	}
	if from > 0 {
		return fmt.Sprintf("%s\n[bytes %d to %d of %d; this is the end]", out, from, to, len(text))
	}
	return out
}

// offset is a number of a call's arguments, 0 when it is none.
func offset(v any) int {
	const most = 1 << 31
	switch x := v.(type) {
	case int64:
		return int(min(max(x, 0), most))
	case float64:
		if x > 0 && x < most {
			return int(x)
		}
	}
	return 0
}
