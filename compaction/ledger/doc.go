// Package ledger keeps the state of a conversation.
package ledger
