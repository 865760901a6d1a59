package hook

import (
	"bufio"
	"io"
	"os"

	"github.com/mortise-dev/mortise/llm/transcript"
)

// maxTranscript is how much of an agent's log is read, in bytes from its end.
const maxTranscript = 8 << 20

// readable reports whether the agent keeps a log of the lane. That of a sub-agent is its parent's.
func (h *handling) readable() bool {
	if h.event.Transcript == "" || h.event.Lane != "" {
		return false
	}
	info, err := os.Stat(h.event.Transcript)
	return err == nil && info.Mode().IsRegular()
}

// transcript reads the agent's log. One that is missing, damaged or of another form is no error: the events are a log, too.
func (h *handling) transcript() *transcript.Conversation {
	if !h.readable() {
		return nil
	}
	f, err := os.Open(h.event.Transcript)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	lines := bufio.NewReader(io.LimitReader(f, maxTranscript))
	if from := info.Size() - maxTranscript; from > 0 {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return nil
		}
		for part := true; part && err == nil; { // the first line may be half
			_, part, err = lines.ReadLine()
		}
	}
	file, err := transcript.Read(lines, transcript.Options{Lenient: true})
	if err != nil {
		return nil
	}
	return &file.Conversations[0]
}
