// Command mortise runs agent conversations through Wasm plugins and background
// compaction. See mortise help.
package main

import (
	"context"
	"os"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
)

func main() {
	host.CompileChild()
	os.Exit(int(cli.Main(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, links.All())))
}
