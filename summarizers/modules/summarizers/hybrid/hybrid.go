package hybrid

import (
	"errors"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/model"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/anchored"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/ledger"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/mask"
)

// Policy is the name under which a module offers this package.
const Policy = "hybrid"

// defaultKeep is how much of an output is left, in bytes.
const defaultKeep = 1200

// Summarize writes the summary. It is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	write, masked := anchored.Summarize, *req
	if _, err := model.Info(anchored.Role(req.Config)); errors.Is(err, capability.Denied) {
		write = ledger.Summarize // it reads no more of an output than it needs
	} else {
		masked.Messages = mask.Results(req.Messages, keep(req.Config))
	}
	s, err := write(&masked)
	if err != nil {
		return nil, err
	}
	s.Policy = Policy + "/" + s.Policy
	return s, nil
}

func keep(config any) int {
	n := mortise.IntOr(config, "keep_bytes", defaultKeep)
	if n < 100 || n > 1<<20 {
		n = defaultKeep
	}
	return int(n)
}
