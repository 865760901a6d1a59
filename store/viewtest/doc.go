// Package viewtest tests the views of a store: that of package session, that of package record and that of package outbox. Each runs the
// contract suite of its package over the store that is given, and all of them work together in one conversation.
package viewtest
