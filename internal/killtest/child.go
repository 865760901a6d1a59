package killtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// environment begins the name of the variable that makes a process a child. Its value is slot/life/name.
const environment = "MORTISE_TEST_KILL_"

// Life is one child. At a time no two have the same slot.
type Life struct {
	// Name is that of what all children work on, as a path.
	Name string
	Slot int
	// Number is which child of its slot it is.
	Number int
}

// Work is what a child does until it is killed. It calls say, a line each, when something is done; from
// several goroutines, if it likes.
type Work func(ctx context.Context, l Life, say func(words ...any)) error

// Variable is what makes a process a child of a kind, for its environment: of a test that starts processes in its own way.
func Variable(kind string, l Life) string { return environment + kind + "=" + l.String() }

// Child makes this process a child of [Run], if it was started as one of that kind, and does not return
// then.
func Child(kind string, work Work) {
	text := os.Getenv(environment + kind)
	if text == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent has gone
	}()
	l, err := parse(text)
	if err == nil {
		err = work(context.Background(), l, voice())
	}
	fmt.Fprintln(os.Stderr, "a child ended:", err)
	os.Exit(1)
}

func (l Life) String() string { return fmt.Sprintf("%d/%d/%s", l.Slot, l.Number, l.Name) }

func parse(text string) (l Life, err error) {
	slot, text, _ := strings.Cut(text, "/")
	number, name, _ := strings.Cut(text, "/")
	if l.Slot, err = strconv.Atoi(slot); err == nil {
		l.Number, err = strconv.Atoi(number)
	}
	l.Name = name
	return l, err
}

// voice writes each line whole.
func voice() func(words ...any) {
	var mu sync.Mutex
	return func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(os.Stdout, words...)
	}
}
