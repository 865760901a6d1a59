package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/internal/config"
)

// granter turns what the config grants into grants of the host. It opens the stores
// that are named, each file once, and closes them.
type granter struct {
	cfg    *Setup
	logger *slog.Logger
	files  map[string]KV
	memory kv.Store
	// dry opens no file of a key-value space.
	dry bool
}

func newGranter(cfg *Setup, logger *slog.Logger) *granter {
	return &granter{cfg: cfg, logger: logger, files: map[string]KV{}, memory: kv.NewMemory()}
}

// of grants what another config names, from the same stores.
func (r *granter) of(cfg *Setup) *granter {
	return &granter{cfg: cfg, logger: r.logger, files: r.files, memory: r.memory}
}

// grants opens what a module's entry names. The error names the key below grants.
func (r *granter) grants(ctx context.Context, module string, c *config.GrantsConfig) (host.Grants, error) {
	level, err := c.Level()
	if err != nil {
		return host.Grants{}, err
	}
	g := host.Grants{Config: c.Values, Clock: c.Clock, Random: c.Random, Sticky: c.Sticky}
	if c.Log {
		g.Capabilities = append(g.Capabilities, log.Grant{Level: level})
	}
	if c.HTTP != nil {
		web, err := webGrant(c.HTTP)
		if err != nil {
			return g, err
		}
		if web.Secrets, err = r.secrets(module, c.Secrets); err != nil {
			return g, err
		}
		g.Capabilities = append(g.Capabilities, web)
	}
	if len(c.Model) > 0 {
		if r.cfg.Clients == nil {
			if r.cfg.Clients, err = OpenGranted(r.cfg); err != nil {
				return g, err
			}
		}
		model, err := r.cfg.grantModels(c.Model)
		if err != nil {
			return g, err
		}
		g.Capabilities = append(g.Capabilities, model)
	}
	if c.KV != nil {
		space, err := r.space(ctx, c.KV)
		if err != nil {
			return g, fmt.Errorf("grants.kv: %w", err)
		}
		g.Capabilities = append(g.Capabilities, space)
	}
	if len(c.Files) > 0 {
		g.Capabilities = append(g.Capabilities, r.mounts(c.Files))
	}
	return g, nil
}

// mounts grants folders.
func (r *granter) mounts(all []config.FilesConfig) *fs.Grant {
	g := new(fs.Grant)
	for _, f := range all {
		g.Mounts = append(g.Mounts, fs.Mount{Host: r.cfg.Path(f.Host), Guest: f.Guest, Writable: f.Writable, Bytes: f.MiB << 20})
	}
	return g
}

// secrets reads the credentials of a module.
func (r *granter) secrets(module string, all map[string]config.SecretConfig) (map[string]http.Secret, error) {
	out := map[string]http.Secret{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, err := r.secret(module, name, all[name])
		if err != nil {
			return nil, fmt.Errorf("grants.secrets.%.64q: %w", name, err)
		}
		out[name] = s
	}
	return out, nil
}

// webGrant grants requests.
func webGrant(h *config.HTTPConfig) (*http.Grant, error) {
	private, err := h.Prefixes()
	if err != nil {
		return nil, err
	}
	return &http.Grant{
		Hosts: h.Hosts, Private: private, Plain: h.Plain, Methods: h.Methods,
		RequestBytes: h.RequestKiB << 10, ResponseBytes: h.ResponseKiB << 10,
		Timeout: time.Duration(h.Timeout), Redirects: h.Redirects,
		PerMinute: h.PerMinute, BytesPerMinute: h.BytesPerMinute, Concurrent: h.Concurrent,
		ResponseHeaders: h.ResponseHeaders,
	}, nil
}

// space opens a key-value space.
func (r *granter) space(ctx context.Context, k *config.KVConfig) (*kv.Grant, error) {
	out := &kv.Grant{
		Store: r.memory, Namespace: k.Namespace, ReadOnly: k.ReadOnly,
		Keys: k.Keys, Bytes: k.MiB << 20, ValueBytes: k.ValueKiB << 10,
	}
	if k.Memory || r.dry {
		return out, nil
	}
	path, err := filepath.Abs(r.cfg.Path(k.Path))
	if err != nil {
		return nil, fmt.Errorf("path %s: %w", k.Path, err)
	}
	store := r.files[path]
	if store == nil {
		if store, err = r.cfg.Links.openKV(ctx, path); err != nil {
			return nil, err
		}
		r.files[path] = store
	}
	out.Store = store
	return out, nil
}

// close closes the stores. It comes after the modules.
func (r *granter) close() error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		errs = append(errs, r.files[path].Close())
	}
	return errors.Join(errs...)
}
