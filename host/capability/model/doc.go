// Package model lets guests ask models: model_ask(request) -> answer block, whose bytes are the embedder's; model_chat(question,
// prompt) -> answer block, where the question is JSON {"role", "system", "answer_tokens"}, and model_info(role) -> a block with JSON
// {"window_tokens", "answer_tokens", "left_tokens", "left_questions"}. Statistics have model, model_tokens and model_cost.
//
// # Concurrency
//
// A Grant may be used by any number of hosts. Its functions are called by any number of goroutines.
//
// # Errors
//
// What is wrong with a Grant is an error of Load, which names the field. A question beyond a budget is a code for the guest.
package model
