package serve

import (
	"context"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// bearerScheme is the name of the security scheme in the OpenAPI document.
const bearerScheme = "bearer"

// scoped is the security of an operation.
func scoped(scope string) []map[string][]string {
	return []map[string][]string{{bearerScheme: {scope}}}
}

func scopeOf(op *huma.Operation) string {
	for _, requirement := range op.Security {
		if scopes := requirement[bearerScheme]; len(scopes) > 0 {
			return scopes[0]
		}
	}
	return ""
}

// authorize is the middleware of all operations.
func (s *Server) authorize(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	op := c.Operation()
	scope := scopeOf(op)
	who, p := s.permit(r, scope)
	if p == nil && scope != "" {
		p = checkType(r, op)
	}
	if p != nil {
		p.write(w)
		return
	}
	next(&override{humaContext: huma.WithValue(c, callerKey{}, who)})
}

// permit returns who sent a request that may use a scope. The empty scope is everybody's.
func (s *Server) permit(r *http.Request, scope string) (who caller, p *Problem) {
	a := accessIn(r.Context())
	who = caller{name: peer(r), operates: a.open()}
	if scope != "" && !a.open() {
		token := a.keys.find(bearer(r.Header))
		switch {
		case token == nil:
			if wait := s.rate.take("unknown " + who.name); wait > 0 {
				return who, tooMany(wait)
			}
			return who, problem(http.StatusUnauthorized, "the request has no valid token", "send the header Authorization: Bearer TOKEN")
		case !token.allows(scope):
			return who, problem(http.StatusForbidden, "the token does not have the scope "+scope, "use a token with that scope")
		}
		who = caller{name: token.Name, operates: token.allows(ScopeAdmin)}
	}
	if wait := s.rate.take(who.name); wait > 0 {
		return who, tooMany(wait)
	}
	return who, nil
}

func tooMany(seconds int) *Problem {
	return problem(http.StatusTooManyRequests, "too many requests", "wait "+strconv.Itoa(seconds)+" s").later(seconds)
}

// checkType refuses bodies of another type than the operation takes: a web page could send
// them without asking.
func checkType(r *http.Request, op *huma.Operation) *Problem {
	if op.RequestBody == nil {
		if r.ContentLength != 0 {
			return problem(http.StatusBadRequest, "the request has a body", "send it without one").about("body")
		}
		return nil
	}
	if r.ContentLength == 0 {
		return nil // huma refuses it if it is required
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if _, ok := op.RequestBody.Content[kind]; err != nil || !ok {
		for want := range op.RequestBody.Content {
			return problem(http.StatusUnsupportedMediaType, "the body has another content type", "send the header Content-Type: "+want).about("header.Content-Type")
		}
	}
	return nil
}

type callerKey struct{}

// caller is who sent a request. Operates is set for one that may use [ScopeAdmin].
type caller struct {
	name     string
	operates bool
}

// callerOf names who sent a request, for logs.
func callerOf(ctx context.Context) string { return callerIn(ctx).name }

func callerIn(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}
