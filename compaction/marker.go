package compaction

import (
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Marker is one compaction: a summary that replaces a part of the log in the view, masks of single
// messages, or both. The log itself does not change. The newest marker of a thread counts; it
// covers what the ones before it covered.
type Marker struct {
	ID       string `json:"id"`
	ThreadID string `json:"thread_id"`
	// FromID and ToID are the first and last message that the summary replaces,
	// those of earlier markers included; without a summary, of what was searched.
	FromID string `json:"from_id"`
	ToID   string `json:"to_id"`
	// Summary is the text, as the summarizer gave it; empty if there are only masks.
	Summary string `json:"summary"`
	// Masks are what the model sees of messages outside of the summary, those of earlier markers included.
	Masks []abi.Mask `json:"masks,omitempty"`
	// PreTokens and PostTokens are the sizes of the view before and after.
	PreTokens     int64     `json:"pre_tokens"`
	PostTokens    int64     `json:"post_tokens"`
	At            time.Time `json:"at"`
	TaskID        string    `json:"task_id,omitempty"`
	Policy        string    `json:"policy,omitempty"`
	Quality       Quality   `json:"quality"`
	ReadFiles     []string  `json:"read_files,omitempty"`
	ModifiedFiles []string  `json:"modified_files,omitempty"`
}

// Tags around a summary in the view, and around the lists of files behind it.
const (
	summaryTag   = "conversation-summary"
	summaryOpen  = "<" + summaryTag + ">\n"
	summaryClose = "\n</" + summaryTag + ">"
	readTag      = "read-files"
	modifiedTag  = "modified-files"
	// besides is in the tag of a list if the summary names more of its files.
	besides = ` besides="those named above"`
)

// message is the summary as the model sees it. Text that looks like the tags is
// escaped, so that it cannot end the summary and speak in another voice.
func (m *Marker) message() abi.Message {
	return abi.Message{
		ID: "summary/" + m.ID, Role: abi.RoleSystem, Visibility: abi.VisibilityInternal,
		Content: []abi.ContentBlock{abi.Text(summaryOpen + escapeTags(m.text()) + summaryClose)},
	}
}

// maxListed is how many files of each kind are listed behind a summary.
const maxListed = 40

// text is the summary and the files that it does not name, so that whatever the
// summarizer wrote the model knows what it read and changed.
func (m *Marker) text() string {
	var b strings.Builder
	b.WriteString(m.Summary)
	for _, l := range []struct {
		tag   string
		files []string
	}{{readTag, m.ReadFiles}, {modifiedTag, m.ModifiedFiles}} {
		missing, others := make([]string, 0, maxListed), ""
		for _, path := range l.files {
			path = shownPath(path)
			if strings.Contains(m.Summary, path) {
				others = besides
			} else if len(missing) < maxListed {
				missing = append(missing, path)
			}
		}
		if len(missing) > 0 {
			b.WriteString("\n\n<" + l.tag + others + ">\n" + strings.Join(missing, "\n") + "\n</" + l.tag + ">")
		}
	}
	return b.String()
}

// shownPath is a path as a line of a list: it can neither end the list nor the line.
func shownPath(path string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '<' || c == '>':
			return '?'
		case c < ' ' || c == 0x7f:
			return ' '
		}
		return c
	}, path)
}

// escapeTags escapes the angle bracket before the name of the tag, in any case
// and with blanks and slashes between.
func escapeTags(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		name := strings.TrimLeft(s[:min(len(s), 64)], "/ \t\r\n")
		if len(name) >= len(summaryTag) && strings.EqualFold(name[:len(summaryTag)], summaryTag) {
			b.WriteString("&lt;")
		} else {
			b.WriteByte('<')
		}
	}
}

// View returns what the model sees of the log: the leading system messages, the
// summary, the messages of the covered part that must stay (pinned ones, with
// their whole round where they are in one, and the request under way), and
// everything behind the covered part, with the marker's masks. Without a marker, or when the log does not
// hold the marker's messages, it is the log itself.
func View(log []abi.Message, m *Marker) []abi.Message {
	if m == nil {
		return log
	}
	c, ok := unweighed(log).covered(m)
	if !ok {
		return Masked(log, m.Masks)
	}
	return put(c.view(log, m.message()), masking(log, m.Masks), c.place)
}

// masksOnly reports a marker that replaces no range.
func (m *Marker) masksOnly() bool { return m.Summary == "" && len(m.Masks) > 0 }

// view puts a summary in the place of what it covers.
func (c cover) view(log []abi.Message, summary abi.Message) []abi.Message {
	view := make([]abi.Message, 0, c.from+1+len(c.keep)+len(log)-c.to-1)
	view = append(view, log[:c.from]...)
	view = append(view, summary)
	for _, i := range c.keep {
		view = append(view, log[i])
	}
	return append(view, log[c.to+1:]...)
}
