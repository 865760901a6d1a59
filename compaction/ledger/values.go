package ledger

import "github.com/mortise-dev/mortise/abi"

// records keeps the fields of records in the result of a tool.
func (l *Ledger) records(n int, c *abi.LedgerCall, text string) {}
