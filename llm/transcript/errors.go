package transcript

import (
	"errors"
	"fmt"
)

// understood lists the formats, for errors.
const understood = "understood are: pi sessions, Claude Code sessions, Codex rollouts, Gemini CLI sessions, OpenCode exports, OpenHands events, " +
	"Goose sessions, message lists in the style of OpenAI (chat messages and items of the Responses API), Anthropic, Gemini, the Vercel AI SDK " +
	"(core and UI messages) and Amazon Bedrock Converse (array, object with messages, JSON lines), SWE-agent and mini-swe-agent trajectories, " +
	"tau-bench results, BFCL memory questions, QMSum meetings"

var (
	// ErrEmpty means that there is nothing in the file.
	ErrEmpty = errors.New("the file is empty")
	// ErrNoMessages means that the format is known and no message was found, or
	// nothing could be read of any.
	ErrNoMessages = errors.New("the recording holds no messages")
	// ErrUnknownFormat means that the file is none of the known recordings.
	ErrUnknownFormat = errors.New("not a recorded session; " + understood)
	// ErrTooLarge means that a limit of [Options] or of the package is exceeded.
	ErrTooLarge = errors.New("too large")
)

// LineError describes what is wrong with one line.
type LineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

// Error returns the line and the reason.
func (e *LineError) Error() string {
	if e == nil || e.Err == nil {
		return "no error"
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}
