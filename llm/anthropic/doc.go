// Package anthropic calls Claude models through Anthropic's Messages API, or any server that implements it.
//
// A [Model] makes one attempt, plain or streamed. Retries, fallback models and the continuation of interrupted answers
// belong to [llm.Client]; the SDK's own retries are off. The package reads no environment variables.
//
// # Requests
//
// Leading system messages become the system prompt. A compaction's summary and later system messages keep their place,
// as user text. Consecutive messages of the same role are merged, tool results first. Blank text and thinking blocks of
// other providers are dropped. A request never ends with an assistant message (current models reject a prefill): a user
// message asks the model to continue. Tool names and call ids that do not match the API's pattern are replaced,
// deterministically.
//
// A request has up to four cache breakpoints: after tools and system prompt, after a compaction's summary, and at the
// end of the two latest user messages, so that each step of a run reads what the previous one wrote. Trailing system
// messages, which hold context that changes with each step, come after the last breakpoint.
//
// A reasoning effort selects adaptive thinking on Claude 4.6 and later, and a thinking budget on older models.
// Temperature and top_p are dropped where the model rejects them.
//
// The signature of a thinking block is the API's. If the block followed tool calls in its response, a prefix holds their
// number, because the API requires blocks in their original order. If the API rejects the thinking blocks of a request,
// for instance because the conversation before them was edited, the request is repeated once without them.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. It starts no goroutines and needs no Close; connections belong to Config.HTTP.
//
// # Errors
//
// All errors are *[llm.Error], except for [llm.ErrNoCount] from CountTokens. The message is the API's, in one line, with
// the request id. It never contains the key.
package anthropic
