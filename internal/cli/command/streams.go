package command

import (
	"io"
	"os"

	"github.com/mortise-dev/mortise/internal/program"
)

// Streams are the standard streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// Hangups has a SIGHUP that waits. Main makes it, unless its caller has, or Err is a terminal.
	Hangups <-chan os.Signal
	// Links are those of Main.
	Links program.Links
}
