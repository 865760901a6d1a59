package ledger

// ruleCues mark sentences of the user that hold beyond the moment.
func ruleCues() []string {
	return append(strongCues(), "should", "shouldn't", "instead", "prefer", "prefere", "ensure", "keep", "no need", "want", "wanted", "dont", "stop doing", "rather than", "let's not")
}

// strongCues mark those that hold always. In a long text, which the user may have pasted, no other
// sentences count.
func strongCues() []string {
	return []string{
		"never", "always", "must", "don't", "do not", "make sure", "from now on", "remember to", "important", "mustn't", "not allowed", "avoid", "under no circumstances",
		"niemals", "nie", "immer", "auf keinen fall", "darf nicht", "muss", "ab jetzt", "jamais", "toujours", "ne pas", "il faut", "nunca", "siempre", "debe",
		"никогда", "всегда", "нельзя", "обязательно", "не меняй", "должен", "должна", "должны", "不要", "绝不", "必须", "始终", "总是", "禁止", "务必", "必ず", "絶対",
	}
}

// findingCues mark sentences of the agent about a cause, a decision or a result.
func findingCues() []string {
	return []string{
		"because", "root cause", "the issue", "the problem", "the bug", "turns out", "found", "the fix", "fixed", "caused by", "the reason", "decided", "decision", "instead of",
		"means that", "works", "doesn't", "does not", "isn't", "is not", "fails", "failed", "missing", "requires", "confirmed", "verified", "so that", "therefore", "already",
		"the key", "importantly", "note that", "actually", "must", "should be", "needs to", "only when", "however", "still", "now",
	}
}

// fillers begin sentences of the agent that announce what it does next.
func fillers() []string {
	return []string{"let me", "now let", "i'll", "now i'll", "i will", "let's", "good", "great", "perfect", "excellent", "now i need", "next,", "first, let me", "i need to", "now i have", "i have a", "i understand", "you're right", "ok", "okay", "sure"}
}

// notUser begin texts that a program wrote in the user's place.
func notUser() []string {
	return []string{
		"<command-name>", "<command-message>", "<local-command", "<task-notification>", "<system-reminder>", "<bash-", "[Request interrupted", "Caveat: The messages below were generated",
		"Base directory for this skill:", "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>", "<turn_aborted>",
		"<INSTRUCTIONS>", "<observation>", "<returncode>", "<output>", "OBSERVATION:", "<stdout>", "<tool_result", "<EXTRA", "API Error:", "<ide_opened_file>", "<session-start",
	}
}

// summaryStarts begin summaries, ours and those of other programs.
func summaryStarts() []string {
	return []string{
		"This session is being continued from a previous conversation", "<conversation-summary>", headStart, "<state_snapshot>", "Summary of the conversation before this point:",
		"Summary of a branch that the conversation came back from:", "Another language model started to solve this problem",
		"The conversation history before this point was compacted", "<summary>", "# Conversation summary", "Your session has been compacted",
	}
}

// refusals begin the result of a call that the user did not allow.
func refusals() []string {
	return []string{"The user doesn't want to proceed with this tool use", "The user rejected", "User rejected", "The user doesn't want to take this action", "User denied", "The user denied"}
}

// errorStarts begin the result of a call that did nothing.
func errorStarts() []string {
	return []string{
		"<tool_use_error>", "error:", "error ", "could not find", "file not found", "no such file", "permission denied", "failed", "string to replace not found", "old_str",
		"no replacement was performed", "invalid ", "cannot ", "file has not been read", "file does not exist", "failed to", "exit code 1", "[no result was recorded]",
		"enoent", "no changes", "0 occurrences", "unable to", "no match",
	}
}
