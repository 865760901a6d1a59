package extract

import "strings"

// sectionOf sorts a sentence by its cue words.
func sectionOf(by, s string) section {
	l := " " + lower(s) + " "
	if by == byUser {
		if !hasAny(l, " i always", " i never", " i don't", " i don’t", " i do not", " i must", " i'm ", " i’m ", " i've ", " i’ve ", " i was ") && hasAny(l, " must ", " never ", " always ", " do not ", " don't ", " only use", " make sure", " please use",
			" avoid ", " required", " no more than", " at most", " at least", " instead of ", " important", " remember ") {
			return secConstraints
		}
		return secPassages
	}
	switch {
	case hasAny(l, " blocked", " cannot proceed", " can't proceed", " waiting for", " waiting on", " need your", " unable to"):
		return secBlocked
	case hasAny(l, " decided", " we'll use", " i'll use", " going with", " chose ", " opted", " the approach", " rather than", " agreed"):
		return secDecisions
	case hasAny(l, " root cause", " the bug", " fails because", " failed because", " the error", " the problem is", " the issue is", " traceback"):
		return secErrors
	case hasAny(l, " todo", " next step", " remaining", " still need", " left to do", " follow-up", " not yet"):
		return secOpen
	case hasAny(l, " fixed", " implemented", " now pass", " passes", " completed", " done ", " done.", " created ", " added ", " updated ",
		" renamed", " removed ", " successfully", " confirmed", " has been ", " have been ", " committed", " works now"):
		return secDone
	case hasAny(l, " let me ", " i will ", " i'll ", " i need to ", " now i ", " next, i", " i'm going to"):
		return secInProgress
	}
	return secPassages
}

func hasAny(s string, subs ...string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

// statement is how much a sentence states a fact about the speaker or the
// matter, as opposed to asking or chatting.
func statement(by, s string) float32 {
	l := " " + lower(s) + " "
	f := float32(1)
	if hasAny(l, " my ", " i'm ", " i am ", " i live", " i work", " i have ", " i've ", " i bought", " i use", " our ", " we have ",
		" i prefer", " i like", " i love", " i ordered", " is called", " named ", " i got ", " i received", " was ", " were ", " is ", " are ") {
		f = 1.2
	}
	if strings.HasSuffix(s, "?") {
		f *= 0.7
	}
	if by == byUser && hasAny(l, " thanks", " thank you", " hello ", " hi there", " hey there", " appreciate", " look forward", " let me know") {
		f *= 0.6
	}
	return f
}

// errorLine reports lines of tool output that tell of a failure.
func errorLine(s string) bool {
	if len(s) > 400 {
		return false
	}
	l := lower(s)
	return strings.Contains(s, "Error:") || strings.Contains(s, "Exception:") || strings.HasPrefix(l, "error") ||
		strings.HasPrefix(s, "FAIL") || strings.HasPrefix(s, "--- FAIL") || strings.HasPrefix(l, "fatal:") ||
		strings.HasPrefix(l, "panic:") || strings.Contains(l, ": error:") || strings.HasPrefix(s, "E   ") ||
		strings.HasPrefix(l, "assertionerror") || strings.Contains(l, "command not found") || strings.Contains(l, "no such file")
}
