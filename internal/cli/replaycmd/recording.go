package replaycmd

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/replay"
)

// recordingEnd is the name of the plugin, and the code of the stop.
const (
	recordingName = "mortise.recording"
	recordingEnd  = "recording_ended"
)

// recording is a native plugin that stops a run when its recording has no more
// to say, as one that was cut off after a tool's result has not.
type recording struct{ replay *replay.Replay }

// Describe subscribes to the start of steps.
func (recording) Describe() abi.Description {
	return abi.Description{
		Name: recordingName, Version: "1", ABI: abi.VersionRange{Min: abi.MinVersion, Max: abi.Version},
		Hooks: []abi.Hook{{Phase: abi.StepStart, Mode: abi.ModeGate}},
	}
}

// OnPhase asks for a stop at the end of the recording.
func (r recording) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	if done, total := r.replay.Position(); done < total {
		return nil, nil //nolint:nilnil // no opinion
	}
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectStop, Code: recordingEnd, Detail: "the recording ends here",
	}}}, nil
}
