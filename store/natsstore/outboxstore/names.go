package outboxstore

import (
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// names makes subjects.
type names struct{ root string }

func (n names) all() string { return n.root + ".>" }

func (n names) logs() string { return n.root + ".*.l" }

func (n names) log(thread string) string { return n.root + "." + jet.Token(thread) + ".l" }

// quorum is a subject that has no records.
func (n names) quorum() string { return n.root + ".q" }

// thread is the log, and the pieces of messages that are too long for one.
func (n names) thread(thread string) string { return n.root + "." + jet.Token(thread) + ".>" }

func (n names) piece(thread string) *nats.Msg {
	return nats.NewMsg(n.root + "." + jet.Token(thread) + ".p." + uuid.NewString())
}
