package providertest

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// oaPart is a part of a message of either OpenAI API.
type oaPart struct {
	Type, Text, Refusal string
	ImageURL            oaURL  `json:"image_url"`
	FileData            string `json:"file_data"`
	FileURL             string `json:"file_url"`
	Filename            string
	File                struct {
		FileData string `json:"file_data"`
		Filename string
	}
}

// oaURL is a string in Responses and an object in Chat Completions.
type oaURL string

// UnmarshalJSON reads both.
func (u *oaURL) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(u))
	}
	var o struct{ URL string }
	err := json.Unmarshal(data, &o)
	*u = oaURL(o.URL)
	return err
}

// oaParts are parts, or a string in place of one of text.
type oaParts []oaPart

// UnmarshalJSON reads both forms.
func (p *oaParts) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*p = oaParts{{}}
		return json.Unmarshal(data, &(*p)[0].Text)
	}
	return json.Unmarshal(data, (*[]oaPart)(p))
}

func (p oaParts) render(to *prompt) {
	for i := range p {
		to.add(p[i].Text, p[i].Refusal)
		if source := string(p[i].ImageURL) + p[i].FileData + p[i].FileURL + p[i].File.FileData; source != "" {
			to.media(source)
		}
	}
}

func (p oaParts) check(where string) *failure {
	for i := range p {
		at := fmt.Sprintf("%s[%d]", where, i)
		b := &p[i]
		switch b.Type {
		case "input_image", "image_url":
			if b.Type == "image_url" {
				at += ".image_url.url"
			} else {
				at += ".image_url"
			}
			if f := checkImageURL(at, string(b.ImageURL)); f != nil {
				return f
			}
		case "input_file":
			if f := checkFile(at, b.Filename, b.FileData); f != nil {
				return f
			}
		case "file":
			if f := checkFile(at+".file", b.File.Filename, b.File.FileData); f != nil {
				return f
			}
		}
	}
	return nil
}

func (p oaParts) abi() []abi.ContentBlock {
	var out []abi.ContentBlock
	for i := range p {
		b := &p[i]
		media := abi.ContentBlock{Type: abi.BlockImage}
		url := string(b.ImageURL)
		switch b.Type {
		case "input_image", "image_url":
		case "input_file", "file":
			media.Type, media.Title = abi.BlockDocument, b.Filename+b.File.Filename
			url = b.FileData + b.File.FileData + b.FileURL
		default:
			out = append(out, abi.Text(b.Text+b.Refusal))
			continue
		}
		var ok bool
		if media.MediaType, media.Data, ok = dataURL(url); !ok {
			media.URL = url
		}
		out = append(out, media)
	}
	return out
}

// callOf decodes a call; arguments that are not JSON stay text.
func callOf(id, name, arguments string) abi.ToolCall {
	c := abi.ToolCall{ID: id, Name: name}
	if json.Unmarshal([]byte(arguments), &c.Arguments) != nil {
		c.Arguments = arguments
	}
	return c
}

func (a *ask) addTools(tools []oaTool) {
	for _, t := range tools {
		a.prompt.add("tool", t.Name, t.Description)
		a.prompt.raw(t.Parameters)
		tool := abi.Tool{Name: t.Name, Description: t.Description}
		_ = json.Unmarshal(t.Parameters, &tool.Parameters)
		a.tools = append(a.tools, tool)
		if t.Namespace != "" {
			if a.spaces == nil {
				a.spaces = map[string]string{}
			}
			a.spaces[t.Name] = t.Namespace
		}
	}
}
