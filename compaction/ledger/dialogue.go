package ledger

// statement keeps a sentence of a dialogue.
func (l *Ledger) statement(n int, by, s string) {}
