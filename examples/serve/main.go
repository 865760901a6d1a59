// Command serve shows mortise serve at work, offline: it starts the real program in a process of its own, sends it requests over HTTP
// as a client and as an operator do, and prints what comes back. Only the model is scripted: a provider that this program
// links into the server, in place of clients of vendors.
//
//	go run ./examples/serve
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/cli/servecmd"
)

// Variables that make this program one of its children.
const (
	serverArgs = "MORTISE_EXAMPLE_SERVE" // mortise, with these arguments, a line each
	readerRoot = "MORTISE_EXAMPLE_ROOT"  // an MCP server that reads this folder
)

// beChild is a child if this process was started as one, and does not return then.
func beChild() {
	host.CompileChild()
	if root := os.Getenv(readerRoot); root != "" {
		os.Exit(serveReader(root))
	}
	if args := os.Getenv(serverArgs); args != "" {
		os.Exit(int(command.Main(context.Background(), strings.Split(args, "\n"), command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, links(), servecmd.New)))
	}
}

// longest is how long the story may take. The first one compiles the modules.
const longest = 3 * time.Minute

func main() {
	beChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := tell(ctx, os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "examples/serve:", err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}
