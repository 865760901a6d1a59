package hook

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Bounds of what one event reads of a transcript.
const (
	maxTranscript = 16 << 20
	maxLine       = 1 << 20
)

// readTranscript reads what the agent's transcript has more than last time, into the index. Lines that are not
// understood are skipped; a file that is missing or was replaced is no error: the events are a log, too.
func (h *handling) readTranscript() {
	path := h.event.Transcript
	if path == "" || h.program.RepairTokens < 0 {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	from := h.lane.offset
	if info.Size() < from {
		from = 0 // it was replaced
	}
	skip := info.Size()-from > maxTranscript
	if skip {
		from = info.Size() - maxTranscript
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return
	}
	h.lane.offset = from + h.readLines(io.LimitReader(f, maxTranscript), skip)
}

// readLines reads whole lines and returns how many bytes they have. Skip drops the first one, which may be half.
func (h *handling) readLines(r io.Reader, skip bool) (read int64) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, tooLong, n, err := nextLine(lines)
		if err != nil {
			return read // the rest of a line that is being written is read next time
		}
		read += int64(n)
		if !skip && !tooLong {
			h.addLine(line)
		}
		skip = false
	}
}

// nextLine reads a line of at most maxLine bytes; longer ones are read and dropped.
func nextLine(r *bufio.Reader) (line []byte, tooLong bool, n int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		n += len(part)
		if len(line)+len(part) > maxLine {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, n, err
		}
	}
}

// addLine adds the texts of a transcript's line.
func (h *handling) addLine(line []byte) {
	var entry struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(line, &entry) != nil {
		return
	}
	if entry.Type == "compacted" { // Codex
		h.codexSummary(entry.Payload)
		return
	}
	body := entry.Message
	if body == nil {
		body = entry.Payload
	}
	var v any
	if body == nil || json.Unmarshal(body, &v) != nil {
		return
	}
	h.addTexts(v, entry.Type == "user" || entry.Type == "assistant", 0)
}

// codexSummary takes the summary of a compaction out of Codex's rollout, once.
func (h *handling) codexSummary(payload json.RawMessage) {
	var c struct {
		Message string `json:"message"`
		Window  any    `json:"window_id"`
		History any    `json:"replacement_history"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return
	}
	all := []string{c.Message}
	walkStrings(c.History, 0, func(s string) { all = append(all, s) })
	h.lane.saved.Repair.Summary = strings.Join(all, "\n")
}

func walkStrings(v any, depth int, visit func(string)) {
	if depth > maxDepth {
		return
	}
	switch t := v.(type) {
	case string:
		visit(t)
	case []any:
		for i := range t {
			walkStrings(t[i], depth+1, visit)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			walkStrings(t[k], depth+1, visit)
		}
	}
}

// addTexts adds a message: what the agent or the user wrote counts as their own, results do not.
func (h *handling) addTexts(v any, own bool, depth int) {
	if depth > maxDepth {
		return
	}
	switch t := v.(type) {
	case string:
		h.lane.repairer.Add(t, own)
	case []any:
		for i := range t {
			h.addTexts(t[i], own, depth+1)
		}
	case map[string]any:
		kind, _ := t["type"].(string)
		switch {
		case strings.Contains(kind, "result") || strings.Contains(kind, "output") && kind != "output_text":
			own = false
		case strings.Contains(kind, "tool_use") || strings.Contains(kind, "call"):
			own = true
		case kind == "message":
			own = t["role"] != "developer" && t["role"] != "system"
		}
		for _, key := range []string{"content", "text", "arguments", "output", "command", "action"} {
			h.addTexts(t[key], own, depth+1)
		}
		walkStrings(t["input"], depth, func(s string) { h.lane.repairer.Add(s, true) })
	}
}
