// Package transcript reads recorded agent sessions into conversations. The
// format is found by content, never by the name of a file:
//
//   - pi sessions: JSON lines, a tree of entries or, in older files, a list
//   - Claude Code sessions: JSON lines of Anthropic content blocks
//   - Codex rollouts of all versions, Gemini CLI sessions, exported sessions of
//     OpenCode, events of OpenHands (0.x and 1.x), sessions of Goose
//   - message lists in the style of OpenAI (chat messages and items of the
//     Responses API), Anthropic, Gemini, the Vercel AI SDK (core and UI messages)
//     and the Converse API of Amazon Bedrock: a JSON array, an object with
//     messages, or JSON lines of either
//   - SWE-agent and mini-swe-agent trajectories, tau-bench results; a command that
//     these agents write into their text becomes a call of bash
//   - BFCL memory questions and QMSum meetings, which hold user turns only
//
// A conversation that comes out is structurally valid: each tool call of an
// assistant message is answered exactly once, by tool messages that follow the
// message directly and in the order of its calls. What had to be repaired for
// that is listed in [Conversation.Notes]; what was left out is counted in
// [File.Skipped].
//
// # Choices
//
// The history is kept whole. A compaction made while the session was recorded is
// listed in [Conversation.Compactions], with the vendor's summary; the messages that
// it replaced are still in the file. They are found in the logs of Claude Code,
// Codex, pi, OpenCode and OpenHands. A summary that a Claude Code session begins
// with is a system message. What an agent writes in the user's place, such as
// a notification of a task or of an interrupt, has [abi.VisibilityInternal]. An
// answer that holds results of its own calls becomes a message for each step, and
// results that are not text become JSON. Answers that were aborted before their first
// word stay as empty assistant messages, with a note. Of a pi session tree the
// path to the last entry is read. Claude Code entries are read in the order of
// the file, including branches that the user left by going back.
//
// [abi.Usage] counts a prompt whole: tokens read from and written to a cache are
// part of PromptTokens, also where the provider reports them separately.
//
// # Limits
//
// Besides the two limits in [Options]: JSON nested at most 512 levels, 4,194,304
// values in a record, 4,096 tool calls in a message, 1,048,576 messages and tool
// calls in a file, 1,000 broken lines.
//
// # Concurrency
//
// The functions may be called concurrently. Results are plain data and belong
// to the caller.
//
// # Errors
//
// A recording whose messages are all empty is an error that names the fields and
// blocks that were seen: it most likely has a form that is not understood.
// [ErrEmpty], [ErrNoMessages], [ErrUnknownFormat] and [ErrTooLarge] are
// distinguished by errors.Is. Whatever is wrong with one line is a *[LineError].
package transcript
