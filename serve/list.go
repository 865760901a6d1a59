package serve

import (
	"cmp"
	"context"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox"
)

type runsInput struct {
	Status string    `query:"status" enum:"created,running,waiting,done"`
	Agent  string    `query:"agent" maxLength:"256"`
	Tenant string    `query:"tenant" maxLength:"256"`
	Thread string    `query:"thread" maxLength:"256"`
	Wait   string    `query:"wait" enum:"tool_permission,user_input,external_event,background_tasks,rate_limit,manual_pause" doc:"What the runs wait for, as tool_permission."`
	Since  time.Time `query:"since" doc:"When the runs were made at the earliest."`
	After  string    `query:"after" maxLength:"1024" doc:"What next was in the page before."`
	Limit  int       `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

// runEntry is a run in a list. GET /v1/runs/{run} has the rest of it.
type runEntry struct {
	ID          string      `json:"id"`
	ThreadID    string      `json:"thread_id"`
	Agent       string      `json:"agent,omitempty"`
	ParentRunID string      `json:"parent_run_id,omitempty"`
	Status      string      `json:"status" enum:"created,running,waiting,done"`
	Termination string      `json:"termination,omitempty" doc:"Why it is done."`
	Wait        string      `json:"wait,omitempty" doc:"What it waits for."`
	WaitUntil   *time.Time  `json:"wait_until,omitempty"`
	Tickets     []runTicket `json:"tickets,omitempty" doc:"The calls that wait for a decision, 32 at most."`
	Steps       int         `json:"steps"`
	Usage       abi.Usage   `json:"usage"`
	Cost        float64     `json:"cost,omitempty"`
	Error       string      `json:"error,omitempty"`
	CreatedAt   time.Time   `json:"created_at"`
	StartedAt   *time.Time  `json:"started_at,omitempty"`
	FinishedAt  *time.Time  `json:"finished_at,omitempty"`
}

// runTicket is a call that waits for a decision. GET /v1/runs/{run} has what it is asked with.
type runTicket struct {
	ID      string `json:"id"`
	CallID  string `json:"call_id,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Action  string `json:"action,omitempty"`
	Message string `json:"message,omitempty"`
	By      string `json:"by,omitempty" doc:"The plugin that asks."`
}

type runsOutput struct {
	Body struct {
		Runs []runEntry `json:"runs"`
		Next string     `json:"next,omitempty" doc:"What after is for the next page. Without it there is none."`
	}
}

func (s *Server) listRuns(ctx context.Context, in *runsInput) (*runsOutput, error) {
	at, id, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	list, err := s.box().Runs(ctx, mailbox.RunQuery{
		Status: mailbox.RunStatus(in.Status), Agent: in.Agent, Unnamed: in.Agent == s.cfg.Runtime.DefaultAgent(), Tenant: in.Tenant, Thread: in.Thread, Wait: in.Wait, Since: in.Since,
		After: mailbox.Run{ID: id, RunTimes: mailbox.RunTimes{CreatedAt: at}}, Limit: in.Limit + 1,
	})
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &runsOutput{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = cursorOf(list[in.Limit-1].CreatedAt, list[in.Limit-1].ID)
	}
	out.Body.Runs = []runEntry{}
	for i := range list {
		r := &list[i]
		entry := runEntry{
			ID: r.ID, ThreadID: r.Thread, Agent: cmp.Or(r.Agent, s.cfg.Runtime.DefaultAgent()), ParentRunID: r.Parent, Status: string(r.Status), Termination: r.Termination,
			Wait: r.Wait, WaitUntil: maybe(r.WaitUntil), Error: r.Error,
			CreatedAt: r.CreatedAt, StartedAt: maybe(r.StartedAt), FinishedAt: maybe(r.FinishedAt),
			Steps: r.Totals.Steps, Usage: usageOf(r.Totals), Cost: r.Totals.Cost,
		}
		for _, t := range r.Tickets {
			entry.Tickets = append(entry.Tickets, runTicket{ID: t.ID, CallID: t.Call, Tool: t.Tool, Action: t.Action, Message: t.Message, By: t.By})
		}
		out.Body.Runs = append(out.Body.Runs, entry)
	}
	return out, nil
}

func usageOf(t mailbox.Totals) abi.Usage {
	return abi.Usage{
		PromptTokens: t.Prompt, CompletionTokens: t.Completion, TotalTokens: t.Prompt + t.Completion,
		CacheReadTokens: t.CacheRead, CacheCreationTokens: t.CacheWrite,
	}
}

type threadsInput struct {
	Tenant string `query:"tenant" maxLength:"256"`
	Parent string `query:"parent" maxLength:"256" doc:"Threads below that one."`
	Wait   string `query:"wait" enum:"tool_permission,user_input,external_event,background_tasks,rate_limit,manual_pause" doc:"What the open run waits for, as tool_permission."`
	Queued bool   `query:"queued" doc:"Threads with requests that wait."`
	After  string `query:"after" maxLength:"256" doc:"The id of the last thread of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

type threadsOutput struct {
	Body struct {
		Threads []threadView `json:"threads"`
		Next    string       `json:"next,omitempty" doc:"What after is for the next page. Without it there is none."`
	}
}

func (s *Server) listThreads(ctx context.Context, in *threadsInput) (*threadsOutput, error) {
	list, err := s.box().Threads(ctx, mailbox.ThreadQuery{
		Tenant: in.Tenant, Parent: in.Parent, Wait: in.Wait, Queued: in.Queued, After: in.After, Limit: in.Limit + 1,
	})
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &threadsOutput{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = list[in.Limit-1].ID
	}
	out.Body.Threads = []threadView{}
	for i := range list {
		out.Body.Threads = append(out.Body.Threads, viewOf(&list[i]))
	}
	return out, nil
}
