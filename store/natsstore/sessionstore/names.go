package sessionstore

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// names makes subjects.
type names struct{ root string }

func (n names) all() string { return n.root + ".>" }

func (n names) thread(thread string) string { return n.root + "." + jet.Token(thread) }

func (n names) events(thread string) string { return n.thread(thread) + ".e" }

func (n names) state(thread string) string { return n.thread(thread) + ".s" }

// statePieces are those of states, statePiece is a new one.
func (n names) statePieces(thread string) string { return n.thread(thread) + ".t.*" }

func (n names) statePiece(thread string) func() *nats.Msg {
	return func() *nats.Msg { return nats.NewMsg(n.thread(thread) + ".t." + uuid.NewString()) }
}

// log is all of a thread's log, record one of it. They count from 1.
func (n names) log(thread string) string { return n.thread(thread) + ".l.*" }

func (n names) record(thread string, place uint64) string {
	return n.thread(thread) + ".l." + strconv.FormatUint(place, 10)
}

func (n names) piece(thread string) func() *nats.Msg {
	return func() *nats.Msg { return nats.NewMsg(n.thread(thread) + ".p." + uuid.NewString()) }
}

// firsts are the first records of all logs.
func (n names) firsts() string { return n.root + ".*.l.1" }

// quorum is a subject that has no records.
func (n names) quorum() string { return n.root + ".q" }

// token is that of the thread that a subject is about.
func (n names) token(subject string) string {
	token, _, _ := strings.Cut(strings.TrimPrefix(subject, n.root+"."), ".")
	return token
}

// place is where a record stands in its log.
func place(subject string) (uint64, error) {
	at, err := strconv.ParseUint(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
	if err != nil {
		return 0, errors.New("a record has no place in the log: it was not written by a sessionstore; delete it")
	}
	return at, nil
}
