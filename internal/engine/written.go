package engine

import "strings"

// Written is what the guest of an instance writes during a call: log messages, and its standard streams.
type Written struct {
	Log      GuestLog
	Out, Err Printer
	stderr   Head
}

// Open prepares it for an instance of a module, once.
func (w *Written) Open(s *Source) {
	w.stderr.Limit = s.Limits.StderrBytes
	w.Log = GuestLog{Logger: s.Logger, Module: s.Name, Granted: s.Log != nil, Level: s.Log.Least(), Limit: s.Limits.LogBytes}
	w.Out = Printer{Log: &w.Log, Stream: "stdout"}
	w.Err = Printer{Log: &w.Log, Stream: "stderr", Also: &w.stderr}
}

// Reset forgets what the call before has written.
func (w *Written) Reset() {
	w.stderr.Reset()
	w.Log.Reset()
}

// End ends the lines in progress and the log of a call. It may be called again.
func (w *Written) End(out *Outcome) {
	w.Out.Flush()
	w.Err.Flush()
	w.Log.End()
	out.LogsDropped, out.Printed = w.Log.Dropped, w.Log.Printed
}

// withoutTrace leaves out the stack trace with which Go ends a program. The log has it.
func withoutTrace(text string) string {
	for _, begin := range []string{"\n\ngoroutine ", "\n\nruntime stack:"} {
		text, _, _ = strings.Cut(text, begin)
	}
	return text
}

// Tail is how an error ends: with what the guest has written to standard error.
func (w *Written) Tail() string {
	if w.stderr.Empty() {
		return ""
	}
	return "; stderr: " + Clean(withoutTrace(w.stderr.String()), MaxDetail)
}
