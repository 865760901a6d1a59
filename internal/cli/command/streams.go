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

	// Hangups has a SIGHUP that waits; nil if Err is a terminal.
	Hangups <-chan os.Signal
	// Links are those of Main.
	Links program.Links
}
