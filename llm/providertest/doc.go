// Package providertest has strict fakes of three APIs on loopback: Anthropic Messages,
// OpenAI Responses and OpenAI Chat Completions, whole and streamed, with their token counts
// and lists of models. A request that the real API rejects is rejected with its status, its
// type of error and nearly its words. Prompt caches follow the published rules, and
// [Server.Bills] is the account of what a provider would have billed.
//
// Answers of Responses are stored unless a request says otherwise: others may continue them
// by previous_response_id or in a conversation, and those that are made in the background
// are polled, streamed and cancelled.
//
// Where the real APIs offer more than agents use, as tools that run on the provider's side
// or files by id, the fakes reject it. Tokens are
// estimated: four bytes of the rendered prompt are one, an image is 1,500. With manual
// thinking an answer always begins with thinking, as that of the real model does.
// Thinking is left out where the request did not ask for it. Chat completions sends it as
// reasoning_content, as compatible servers do.
//
// # Concurrency
//
// A [Server] is safe for concurrent use, and Config.Reply is called concurrently. Close
// ends all requests and waits for them.
//
// # Errors
//
// [New] fails where no loopback port can be had. A request that is rejected is an answer of
// the server, and a [Bill] with Failed set.
package providertest
