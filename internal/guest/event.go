package guest

import (
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// packedEvent is an abi.Event with messages that are encoded already. It has the same
// fields in the same order.
type packedEvent struct {
	ABI             int             `json:"abi"`
	Phase           abi.Phase       `json:"phase"`
	Run             abi.RunIdentity `json:"run"`
	Step            int             `json:"step"`
	Messages        []wire.Raw      `json:"messages,omitempty"`
	MessagesFrom    int             `json:"messages_from,omitempty"`
	MessagesTotal   int             `json:"messages_total"`
	State           map[string]any  `json:"state,omitempty"`
	Response        *abi.Response   `json:"response,omitempty"`
	Call            *abi.ToolCall   `json:"call,omitempty"`
	Result          *abi.ToolResult `json:"result,omitempty"`
	ResultMessageID string          `json:"result_message_id,omitempty"`
	Notices         []abi.Notice    `json:"notices,omitempty"`
	Action          *abi.Action     `json:"action,omitempty"`
	Effect          *abi.Effect     `json:"effect,omitempty"`
	Config          any             `json:"config,omitempty"`
}

// set takes all but the messages from an event.
func (p *packedEvent) set(e *abi.Event) {
	*p = packedEvent{
		ABI: e.ABI, Phase: e.Phase, Run: e.Run, Step: e.Step,
		Messages: p.Messages[:0], MessagesFrom: e.MessagesFrom, MessagesTotal: e.MessagesTotal,
		State: e.State, Response: e.Response, Call: e.Call, Result: e.Result, ResultMessageID: e.ResultMessageID,
		Notices: e.Notices, Action: e.Action, Effect: e.Effect, Config: e.Config,
	}
}

// clear lets go of the event; the room for its messages stays.
func (p *packedEvent) clear() {
	clear(p.Messages[:cap(p.Messages)])
	*p = packedEvent{Messages: p.Messages[:0]}
}
