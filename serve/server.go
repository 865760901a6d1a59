package serve

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Server serves a Runtime by HTTP. Make one with [New].
type Server struct {
	cfg     Config // without what access has
	access  atomic.Pointer[access]
	rate    *limiter
	rules   *rules
	changes changes
	started time.Time
	public  http.Handler
	admin   http.Handler

	// outage is set while the store fails, so that it is logged once.
	outage atomic.Bool

	mu       sync.Mutex
	draining chan struct{}
	drained  bool
	// streams end the open streams, by number.
	streams map[uint64]context.CancelCauseFunc
	number  uint64
	open    sync.WaitGroup
}

// New checks the config and makes a Server. It listens nowhere: see [Server.HTTP].
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	s := &Server{
		cfg: cfg, rate: newLimiter(cfg.Limits), rules: newRules(), started: cfg.Now(),
		draining: make(chan struct{}), streams: map[uint64]context.CancelCauseFunc{},
	}
	s.access.Store(accessOf(&cfg))
	s.cfg.Agents, s.cfg.Tokens, s.cfg.Origins, s.cfg.Hosts = nil, nil, nil, nil
	s.public, s.admin = s.handler(false), s.handler(true)
	return s, nil
}

// Public is the API for clients: runs, threads, and GET /openapi.json.
func (s *Server) Public() http.Handler { return s.public }

// Admin is all of [Server.Public], and the API for operators.
func (s *Server) Admin() http.Handler { return s.admin }

// HTTP returns an http.Server for a handler, with the limits of the Config.
func (s *Server) HTTP(h http.Handler) *http.Server {
	l := s.cfg.Limits
	return &http.Server{Handler: h, MaxHeaderBytes: max(l.Header, 0), ReadHeaderTimeout: l.Read, IdleTimeout: 2 * time.Minute}
}

func (s *Server) handler(admin bool) http.Handler {
	mux := http.NewServeMux()
	api := humago.New(mux, s.document())
	api.UseMiddleware(s.authorize)
	s.runRoutes(api)
	s.threadRoutes(api)
	if admin {
		s.operatorRoutes(api)
		s.probes(mux)
	}
	// Errors are Problems, see register.
	delete(api.OpenAPI().Components.Schemas.Map(), schemaName(reflect.TypeFor[huma.ErrorModel](), ""))
	delete(api.OpenAPI().Components.Schemas.Map(), schemaName(reflect.TypeFor[huma.ErrorDetail](), ""))
	return s.guard(mux)
}

// document configures the OpenAPI document.
func (s *Server) document() huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Mortise", Version: s.cfg.Version,
			Description: "Runs of agents, their events, threads and plugins. Errors are RFC 9457 problems. Unknown fields and query parameters are refused.",
		},
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			bearerScheme: {Type: "http", Scheme: "bearer", Description: "A token of the server's configuration. Without tokens only loopback peers are served."},
		}},
	}
	return huma.Config{
		OpenAPI: doc, OpenAPIPath: "/openapi", DefaultFormat: "application/json",
		Formats:                      map[string]huma.Format{"application/json": strictJSON(), "json": strictJSON()},
		RejectUnknownQueryParameters: true,
		Transformers: []huma.Transformer{func(c huma.Context, _ string, v any) (any, error) {
			e, ok := v.(*huma.ErrorModel)
			if !ok {
				return v, nil
			}
			p := s.humaProblem(e)
			if o, ok := c.(*override); ok {
				o.status = p.Status
			}
			return p, nil
		}},
	}
}

// override is a huma.Context whose status a transformer may change.
type override struct {
	humaContext

	status int
}

// humaContext has another name than its method Context.
type humaContext huma.Context

// Unwrap is for humago.Unwrap.
func (o *override) Unwrap() huma.Context { return o.humaContext }

func (o *override) SetStatus(code int) {
	if o.status != 0 {
		code = o.status
	}
	o.humaContext.SetStatus(code)
}
