// Package anthropic asks Claude models over Anthropic's Messages API, or a server that speaks it.
//
// A [Model] makes one attempt, plain or streamed. Retries, fallback models and the continuation of answers that broke
// off belong to [llm.Client]; the SDK's own retries are off. No setting is read from the environment.
//
// # Requests
//
// Leading system messages are the system prompt. A compaction's summary and later system messages stay where they are,
// as text of the user. Consecutive messages of one role are one message, tool results first. Blank texts are left out,
// and so are thinking blocks of other providers. A request never ends with an answer to be completed, which current
// models refuse: the user asks to continue. Names of tools and ids of calls that break the API's pattern are replaced,
// the same by the same each time.
//
// Up to four cache breakpoints are set, where consecutive steps of a run find them again: behind tools and system
// prompt, behind a compaction's summary, and at the end of the two latest user messages. System messages at the very
// end are not cached: context that changes each step.
//
// Reasoning effort is adaptive thinking with an effort where the model has it (Claude 4.6 and later), a budget of
// thinking tokens before, and temperature and top_p are left out where the model refuses them.
//
// Thinking blocks carry the API's signature. One that came behind tool calls has the number of those calls in front of
// it, since the API wants its blocks back in their order. When the API refuses thinking that it is sent, which is what
// an edited conversation comes to, the request is sent once more without.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. It starts no goroutine and needs no closing; its connections are those of
// Config.HTTP.
//
// # Errors
//
// All are *[llm.Error], but for [llm.ErrNoCount] of CountTokens. Their message is the API's, in one line, with the
// request's id. It never has the key.
package anthropic
