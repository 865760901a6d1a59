// Package openai asks models over OpenAI's two APIs: Responses, and Chat Completions,
// which most other servers speak too (vLLM, Ollama, llama.cpp, OpenRouter, Gemini's
// compatible endpoint).
//
// Nothing is stored at the provider. Reasoning items of the Responses API travel in the
// conversation, encrypted, as the signatures of thinking blocks, and the next request has
// all items in the order in which the model wrote them. Chat Completions takes no reasoning
// back; a text of reasoning that a server streams is a thinking block without signature.
//
// A conversation that ends with a message of the assistant is sent as it is: both APIs take
// it, and the model writes a new message behind it. llm.Client ends with a message of the
// user when it continues an answer.
//
// Names of tools and ids of calls that the API does not take are replaced, the same ones
// each time, and names are restored in the answer.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. It starts no goroutine and needs no closing.
//
// # Errors
//
// [New] names the field that is wrong. All other errors are *llm.Error. Their messages are
// those of the provider in one line, without keys.
package openai
