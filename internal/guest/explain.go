package guest

import (
	"context"
	"errors"
	"net/netip"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/capability/model"
)

// Explain looks into a module that host.Load refused for an import. When the guest
// says in its description what it needs the capability for, the error that comes
// back says so, too, and is [ErrNotGranted]; else err comes back as it is.
//
// To read the description of a guest that does not load without a grant, the guest is
// loaded once with placeholders that reach nothing: a space that is empty and read-only,
// a network without names, and a model that does not answer.
func Explain(ctx context.Context, h *host.Host, spec host.Spec, err error) error {
	if !errors.Is(err, host.ErrImport) || ctx.Err() != nil {
		return err
	}
	trial := spec
	trial.Grants = powerless(spec.Grants)
	m, loadErr := h.Load(ctx, trial)
	if loadErr != nil {
		return err // something else is wrong as well, or this is not about a grant
	}
	defer m.Close(context.WithoutCancel(ctx))
	g, openErr := Open(ctx, m)
	if openErr != nil {
		return err
	}
	if _, missing := g.CheckGrants(spec.Grants); missing != nil {
		return &explained{error: missing, cause: err}
	}
	return err
}

// explained says more than its cause, and is both for errors.Is.
type explained struct {
	error

	cause error
}

// Unwrap returns both errors.
func (e *explained) Unwrap() []error { return []error{e.error, e.cause} }

// powerless keeps nothing of the grants but the signatures of functions, and has
// everything that an import can need.
func powerless(g host.Grants) host.Grants {
	out := host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory(), ReadOnly: true}, &model.Grant{Ask: func(context.Context, []byte) ([]byte, error) { return nil, errNothing }}, &http.Grant{Hosts: []string{"nowhere.invalid"}, Resolver: noNames{}}}}
	for _, f := range g.Functions {
		f.Call = func(context.Context, *host.Caller, []uint64) error { return errNothing }
		out.Functions = append(out.Functions, f)
	}
	return out
}

var errNothing = errors.New("nothing is granted while a guest describes itself")

// noNames is a network without names.
type noNames struct{}

// LookupNetIP implements host.Resolver.
func (noNames) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errNothing
}
