package providertest

import (
	"cmp"
	"maps"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// DefaultKey is the key that a server wants whose Config has none.
const DefaultKey = "sk-test-5f0c2b7a9d1e4c63"

// API is one of the faked APIs.
type API string

// The faked APIs.
const (
	AnthropicMessages API = "anthropic.messages"
	OpenAIResponses   API = "openai.responses"
	OpenAIChat        API = "openai.chat"
)

// Thinking is how a model may be asked to think.
type Thinking string

// Ways to think. The zero value allows all of them.
const (
	ThinkingNone     Thinking = "none"
	ThinkingBudget   Thinking = "budget"   // Anthropic's manual thinking
	ThinkingAdaptive Thinking = "adaptive" // Anthropic's adaptive thinking
)

// ModelSpec describes a model. Window and MaxOutput are in tokens, 200,000 and 64,000 when 0.
// Input, Output and Cached are dollars per million tokens; Cached, for a read from the
// cache, is a tenth of Input when 0.
type ModelSpec struct {
	Window, MaxOutput     int64
	Thinking              Thinking
	Input, Output, Cached float64
	// SystemTurns means that Anthropic's API takes messages of the role system in the list.
	SystemTurns bool
}

// Config makes a [Server]. Zero fields mean the default.
type Config struct {
	// Reply decides what the model answers; nil is an echo. It is called concurrently.
	Reply func(q Query) Answer
	// Key is the one to send, DefaultKey when empty.
	Key string
	// Models are those that exist, by name; nil is claude-sonnet-4-5, claude-opus-4-8, gpt-5 and gpt-4.1.
	Models map[string]ModelSpec
	// Now is the clock of the prompt caches, time.Now when nil.
	Now func() time.Time
}

// Query is a request that was accepted, with what it says in the project's terms. Failed
// tool results have is_error in their Metadata.
type Query struct {
	API      API
	Model    string
	Stream   bool
	System   string
	Messages []abi.Message
	Tools    []abi.Tool
	// N counts the queries of the server, from 1.
	N      int
	Header http.Header
	Body   []byte
}

// Answer is what the model answers. The server signs thinking; a thinking block without
// text is redacted.
type Answer struct {
	Content []abi.ContentBlock
	Calls   []abi.ToolCall
	// Stop is tool_use where there are calls and end_turn where there are none, when empty.
	Stop abi.StopReason
	// RawArguments are arguments as the model wrote them, by the id of the call.
	RawArguments map[string]string
	Fault        *Fault
	// Pace is the time before each chunk: a piece of text, thinking or arguments.
	Pace time.Duration
}

// Fault is what goes wrong. A Status makes it an error instead of an answer, unless
// ErrorEventAfter is set.
type Fault struct {
	Status        int
	Type, Message string
	RetryAfter    time.Duration
	// CutAfter so many chunks the connection breaks, ErrorEventAfter so many an error event
	// ends the stream. An answer that is not streamed breaks off or is an error.
	CutAfter, ErrorEventAfter int
	// Hang sends nothing after CutAfter chunks until the client gives up.
	Hang bool
	// Refusal makes the model refuse, with Message as its words.
	Refusal bool
}

// Bill is what one request cost. Cost is in dollars. Failed requests cost what had come of
// the answer: nothing, unless a stream broke.
type Bill struct {
	API            API
	Model          string
	Usage          abi.Usage
	Cost           float64
	Failed         bool
	At             time.Time
	IdempotencyKey string
}

func (c Config) withDefaults() Config {
	c.Key = cmp.Or(c.Key, DefaultKey)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Reply == nil {
		c.Reply = echo
	}
	if c.Models == nil {
		c.Models = map[string]ModelSpec{
			"claude-sonnet-4-5": {Thinking: ThinkingBudget, Input: 3, Output: 15},
			"claude-opus-4-8":   {Window: 1_000_000, MaxOutput: 128_000, Thinking: ThinkingAdaptive, Input: 5, Output: 25, SystemTurns: true},
			"gpt-5":             {Window: 400_000, MaxOutput: 128_000, Input: 1.25, Output: 10},
			"gpt-4.1":           {Window: 1_047_576, MaxOutput: 32_768, Thinking: ThinkingNone, Input: 2, Output: 8, Cached: 0.5},
		}
	}
	c.Models = maps.Clone(c.Models)
	for name, m := range c.Models {
		m.Window, m.MaxOutput = cmp.Or(m.Window, 200_000), cmp.Or(m.MaxOutput, 64_000)
		m.Cached = cmp.Or(m.Cached, m.Input/10)
		c.Models[name] = m
	}
	return c
}

// echo answers with the text of the last message.
func echo(q Query) Answer {
	text := "nothing"
	if n := len(q.Messages); n > 0 {
		text = cmp.Or(q.Messages[n-1].Text(), text)
	}
	return Answer{Content: []abi.ContentBlock{abi.Text(text)}}
}
