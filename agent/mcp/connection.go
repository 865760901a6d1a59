package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/agent"
)

// maxMessage bounds a message of a server, in bytes.
const maxMessage = 16 << 20

// Bounds on the progress of a call: updates that wait for the listener, and the text of one.
const (
	maxProgress     = 16
	maxProgressText = 4 << 10
)

var (
	errOver   = errors.New("the session is over") // c.cause has the reason
	errClosed = errors.New("it was closed")
)

// connection is a session with a server. It is over when the server has ended, or broke the protocol, or was closed.
type connection struct {
	session *sdk.ClientSession
	grace   time.Duration
	// stop ends the transport, whatever the session still waits for. It may be called more than once.
	stop func()
	// changed has an element when the server announced that its tools have changed.
	changed chan struct{}
	// calls counts the calls, and their goroutines.
	calls sync.WaitGroup

	once  sync.Once
	over  chan struct{}
	cause error // set before over is closed

	tokens   atomic.Int64
	progress sync.Map // token to chan string
}

// dial starts a server and the session with it. Servers of all ages know the handshake of 2025; one that refuses it is
// asked for the latest.
func (s *server) dial(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, fmt.Errorf("it did not start within %v", s.cfg.StartTimeout))
	defer cancel()
	c, err := s.connect(ctx, "2025-11-25")
	if refusal(err) != nil {
		c, err = s.connect(ctx, "")
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return c, err
}

func (s *server) connect(ctx context.Context, version string) (*connection, error) {
	c := &connection{grace: s.all.Grace, changed: make(chan struct{}, 1), over: make(chan struct{})}
	transport, err := s.transport(ctx, c)
	if err != nil {
		return nil, err
	}
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		c.session, err = c.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	}()
	select {
	case <-connected:
	case <-ctx.Done(): // Connect may wait for more than ctx
		c.stop()
		<-connected
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	c.calls.Go(func() {
		err := c.session.Wait()
		if err == nil {
			err = io.EOF
		}
		c.end(err)
	})
	return c, nil
}

// client takes the notifications of one session.
func (c *connection) client() *sdk.Client {
	client := sdk.NewClient(&sdk.Implementation{Name: "mortise", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progressed(r.Params) },
	})
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch method {
			case "roots/list", "sampling/createMessage", "elicitation/create", "completion/complete":
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
			}
			return next(ctx, method, r)
		}
	})
	return client
}

// end makes the connection over. The first cause counts.
func (c *connection) end(cause error) {
	c.once.Do(func() {
		c.cause = cause
		close(c.over)
	})
}

// close ends the session and the transport, and waits for all goroutines.
func (c *connection) close(cause error) {
	c.end(cause)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.session.Close() // what is wrong with it was the cause
	}()
	pause(c.grace, closed, nil)
	c.stop()
	<-closed
	c.calls.Wait()
}

// call calls a tool. The SDK may keep waiting for a server that does not read: then it does so without the caller, until
// the connection is closed.
func (c *connection) call(ctx context.Context, name string, args any, timeout time.Duration) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the tool did not answer within %v", timeout))
	defer cancel()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	defer c.follow(ctx, params)()
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	answers := make(chan answer, 1)
	c.calls.Go(func() {
		result, err := c.session.CallTool(ctx, params)
		answers <- answer{result, err}
	})
	select {
	case a := <-answers:
		return a.result, c.explain(ctx, a.err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.over:
		return nil, errOver
	}
}

// explain turns the SDK's error of a call into one for the model.
func (c *connection) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if r := refusal(err); r != nil {
		return fmt.Errorf("the server answered: %s (%d)", r.Message, r.Code)
	}
	pause(250*time.Millisecond, ctx.Done(), c.over) // the session ends a moment after its calls
	select {
	case <-c.over:
		return errOver
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// refusal is the protocol error that a server answered, or nil. The SDK has one of its own for a request that never arrived.
func refusal(err error) *jsonrpc.Error {
	const rejectedByTransport = -32005
	if r, ok := errors.AsType[*jsonrpc.Error](err); ok && r.Code != rejectedByTransport {
		return r
	}
	return nil
}

// follow passes the progress of a call to the listeners of the run, when there is one. The function that it returns ends that.
func (c *connection) follow(ctx context.Context, params *sdk.CallToolParams) func() {
	run := agent.CallOf(ctx)
	if run == nil {
		return func() {}
	}
	token := strconv.FormatInt(c.tokens.Add(1), 10)
	params.SetProgressToken(token)
	updates := make(chan string, maxProgress)
	c.progress.Store(token, updates)
	ctx, cancel := context.WithCancel(ctx)
	c.calls.Go(func() {
		for {
			select {
			case text := <-updates:
				_ = run.Output(ctx, text) // the call is over, and its result counts
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		c.progress.Delete(token)
		cancel()
	}
}

// progressed hands on an update, or drops it when too many wait already.
func (c *connection) progressed(p *sdk.ProgressNotificationParams) {
	found, _ := c.progress.Load(p.ProgressToken)
	updates, ok := found.(chan string)
	if !ok {
		return
	}
	text := clip(p.Message, maxProgressText)
	if text == "" {
		text = strconv.FormatFloat(p.Progress, 'g', -1, 64)
		if p.Total > 0 {
			text += "/" + strconv.FormatFloat(p.Total, 'g', -1, 64)
		}
	}
	select {
	case updates <- text + "\n":
	default:
	}
}
