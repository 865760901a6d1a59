package compaction

import (
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Marker is one compaction: a summary that stands in the view for a part of the
// log. The log itself does not change. The newest marker of a thread counts; it
// covers what the ones before it covered.
type Marker struct {
	ID       string `json:"id"`
	ThreadID string `json:"thread_id"`
	// FromID and ToID are the first and last message that the summary stands for,
	// those of earlier markers included.
	FromID string `json:"from_id"`
	ToID   string `json:"to_id"`
	// Summary is the text, as the summarizer gave it.
	Summary string `json:"summary"`
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

// Tags around a summary in the view.
const (
	summaryOpen  = "<conversation-summary>\n"
	summaryClose = "\n</conversation-summary>"
)

// message is the summary as the model sees it. Text that looks like the tags is
// escaped, so that it cannot end the summary and speak in another voice.
func (m *Marker) message() abi.Message {
	text := strings.NewReplacer("<conversation-summary", "&lt;conversation-summary", "</conversation-summary", "&lt;/conversation-summary").Replace(m.Summary)
	return abi.Message{
		ID: "summary/" + m.ID, Role: abi.RoleSystem, Visibility: abi.VisibilityInternal,
		Content: []abi.ContentBlock{abi.Text(summaryOpen + text + summaryClose)},
	}
}

// View returns what the model sees of the log: the leading system messages, the
// summary, the messages of the covered part that must stay (pinned ones, with
// their whole round where they are in one, and the request under way), and
// everything behind the covered part. Without a marker, or when the log does not
// hold the marker's messages, it is the log itself.
func View(log []abi.Message, m *Marker) []abi.Message {
	if m == nil {
		return log
	}
	from, to := indexOf(log, m.FromID), indexOf(log, m.ToID)
	if from < 0 || to < from {
		return log
	}
	keep := kept(log, from, to)
	view := make([]abi.Message, 0, from+1+len(keep)+len(log)-to-1)
	view = append(view, log[:from]...)
	view = append(view, m.message())
	for _, i := range keep {
		view = append(view, log[i])
	}
	return append(view, log[to+1:]...)
}

// kept lists the covered messages that stay in the view, in order.
func kept(log []abi.Message, from, to int) []int {
	stays := make(map[int]bool)
	if user := latestUser(log); user >= from && user <= to {
		stays[user] = true
	}
	for i := from; i <= to; i++ {
		if !log[i].Pinned {
			continue
		}
		first, last := round(log, i, from, to)
		for j := first; j <= last; j++ {
			stays[j] = true
		}
	}
	var out []int
	for i := from; i <= to && len(stays) > len(out); i++ {
		if stays[i] {
			out = append(out, i)
		}
	}
	return out
}

// round is the call and its results around a message, or the message alone.
func round(log []abi.Message, i, from, to int) (first, last int) {
	first, last = i, i
	for first > from && log[first].Role == abi.RoleTool {
		first--
	}
	for last < to && log[last+1].Role == abi.RoleTool {
		last++
	}
	return first, last
}
