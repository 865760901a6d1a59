// Package hook connects the hooks of other agents to the phases of a [phases.Runtime]. An agent's event comes as the
// JSON that the agent writes to a hook, is translated into one vocabulary and fired, and what the plugins decided is
// encoded in the form that this agent understands. It decides nothing itself.
//
// A [Dialect] is data: which events fire which phases, how fields and tools are named, and which answers have a form.
// An answer without a form is recorded as unsupported, and a plugin that fails closed denies the call instead.
//
// # Concurrency
//
// An [Engine] is safe for concurrent use. Events of one lane (the session of an agent, or one of its sub-agents) are
// handled one at a time in the order of their arrival, those of different lanes at once. Dialects are read-only.
//
// # Errors
//
// [Engine.Handle] fails when an event cannot be decoded or its state cannot be stored; the caller answers by its policy
// then. A failing plugin is no error: its failure policy decides.
package hook
