package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Grants are what the operator lets a module do beyond computing. A module that
// imports a function of a capability which was not granted is refused by Load.
type Grants struct {
	// Config is what the guest reads with config_get.
	Config map[string]string
	// Clock gives the guest the real time. Else every instance sees the same
	// fixed clock.
	Clock bool
	// Random gives the guest random bytes of the system. Else every instance
	// sees the same fixed sequence.
	Random bool
	// Sticky lets the module have sessions: instances that keep their state from
	// call to call. See [Module.Session].
	Sticky bool
	// Capabilities are those of the packages below host/capability, each at most once.
	Capabilities []Capability
	// Functions are host functions of the embedder.
	Functions []Function
}

// Capability returns the granted capability of a name, nil where it is not granted:
//
//	space, ok := spec.Grants.Capability("kv").(*kv.Grant)
func (g Grants) Capability(name string) Capability {
	for _, c := range g.Capabilities {
		if c != nil && c.Capability() == name {
			return c
		}
	}
	return nil
}

// withDefaults checks the grants of a module and fills in their zero fields. What
// it returns shares nothing with the caller that the caller may change.
func (g Grants) withDefaults(module string) (Grants, error) {
	var err error
	g.Config = maps.Clone(g.Config)
	if g.Capabilities, err = checked(g.Capabilities, module); err != nil {
		return g, err
	}
	g.Functions, err = functions(g.Functions)
	return g, err
}

func checked(in []Capability, module string) ([]Capability, error) {
	var out []Capability
	for n, c := range in {
		if c == nil {
			return nil, fmt.Errorf("Grants.Capabilities[%d] is nil; leave it out", n)
		}
		name := c.Capability()
		if slices.ContainsFunc(out, func(o Capability) bool { return o.Capability() == name }) {
			return nil, fmt.Errorf("Grants.Capabilities[%d]: %s is there twice", n, name)
		}
		one, err := c.Checked(module)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// lacking is a capability that, as it was granted, does not offer all of its imports.
type lacking interface {
	Lacks(module, name string) bool
}

// has reports whether the capability of an import is granted, and offers it.
func (g *Grants) has(capability, module, name string) bool {
	return capability == "" || slices.ContainsFunc(g.Capabilities, func(c Capability) bool {
		l, partly := c.(lacking)
		return c.Capability() == capability && (!partly || !l.Lacks(module, name))
	})
}

// openGrants are the open grants of a generation, shared by its instances.
type openGrants struct {
	use *engine.Usage
	all []*engine.Opened
	// blocking means that the guest can reach code of the embedder.
	blocking bool
}

// openAll opens what the grants of a module name, and puts it into the source. close gives it back.
func openAll(src *engine.Source, g *Grants, use *engine.Usage, logger *slog.Logger, inputBytes int) (*openGrants, error) {
	src.Config, src.Clock, src.Random = g.Config, g.Clock, g.Random
	src.Env = &engine.Env{Module: src.Name, Logger: logger, InputBytes: inputBytes, Use: use}
	out := &openGrants{use: use, blocking: len(g.Functions) > 0}
	for _, c := range g.Capabilities {
		o, err := c.Open(src.Env)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host: module %q: %w", src.Name, err), out.close())
		}
		out.all = append(out.all, o)
		out.blocking = out.blocking || o.Blocking
		src.Functions = append(src.Functions, o.Functions...)
		src.Mounts = append(src.Mounts, o.Mounts...)
		if o.Log != nil {
			src.Log = o.Log
		}
	}
	src.Functions = append(src.Functions, ungranted(src.Functions)...)
	for _, f := range g.Functions {
		src.Functions = append(src.Functions, f.hostFunc())
	}
	return out, nil
}

// close comes after the last instance was closed.
func (o *openGrants) close() error {
	var errs []error
	for _, one := range o.all {
		if one.Close != nil {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

// inside reports whether ctx comes from a guest of the same module.
func (o *openGrants) inside(ctx context.Context) bool { return o.blocking && o.use.Inside(ctx) }
