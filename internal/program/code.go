package program

import (
	"errors"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/summarizers"
)

// WithModule gives an error of loading modules its code.
func WithModule(err error) error { return exit.With(moduleCode(err), err) }

// moduleCode is the code of what failed while modules were loaded: the config is wrong if nothing else is.
func moduleCode(err error) exit.Code {
	if joined := exit.JoinedErrors(err); joined != nil {
		for _, e := range joined {
			if code := moduleCode(e); code != exit.Config {
				return code
			}
		}
		return exit.Config
	}
	for _, mistake := range []error{host.ErrChecksum, guest.ErrNotGranted, guest.ErrConfig, summarizers.ErrPolicy} {
		if errors.Is(err, mistake) {
			return exit.Config
		}
	}
	return exit.Or(exit.Module, err)
}
