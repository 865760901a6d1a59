// Package model asks models that the operator, or the program around the host, grants.
//
// [Chat] asks the model of a role, within its window and within budgets of tokens and cost
// that the host keeps; [Info] returns them. A guest that calls these two loads without
// the grant, too, and then gets capability.Denied: so it can do its work in another way.
//
// [Ask] sends bytes that only the guest and the program around the host understand. A guest
// that calls it does not load without the grant.
//
// How often a guest may ask within one call is bounded. Natively, the package asks the
// functions that a test gives to Provide and ProvideRole.
//
// # Concurrency
//
// A guest runs one call at a time, and so does this package.
//
// # Errors
//
// All return a *capability.Error: Denied, Quota, TooLarge (also for a question that does not
// fit the model's window), Invalid for an empty request, Timeout, and Failed when the model
// did not answer or refused to.
package model

// Question is what a guest asks the model of a role.
type Question struct {
	// Role is a name that the operator has given to a model.
	Role string
	// System and Prompt are what the model reads. A prompt is required.
	System, Prompt string
	// AnswerTokens is how long the answer may be; 0 is the role's own bound.
	AnswerTokens int64
}

// RoleInfo is what the host says about a role.
type RoleInfo struct {
	// WindowTokens is what the model takes, question and answer together. The host counts
	// a token for three bytes.
	WindowTokens int64
	// AnswerTokens bounds an answer.
	AnswerTokens int64
	// LeftTokens and LeftQuestions are what budgets allow in this call.
	LeftTokens, LeftQuestions int64
}

// Chat returns what the model of a role answers. The text may be empty.
func Chat(q Question) (string, error) { return chat(q) }

// Info returns what is known about a role.
func Info(role string) (RoleInfo, error) { return info(role) }

// Ask returns the model's answer to a request.
func Ask(request []byte) ([]byte, error) { return ask(request) }
