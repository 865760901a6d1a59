package program

import (
	"time"

	"github.com/mortise-dev/mortise/blob"
)

// Outputs bounds large outputs.
func (c *Setup) Outputs() blob.Config {
	return blob.Config{
		InlineBytes: c.Tasks.OutputBytes, MaxBytes: int64(c.Tasks.QuotaMiB) << 20,
		MaxAge: time.Duration(c.Serve.Retention.Outputs), MaxCount: c.Serve.Retention.MaxOutputs,
	}
}
