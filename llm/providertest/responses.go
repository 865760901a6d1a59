package providertest

func responses() *protocol { return chat() }
func chat() *protocol      { p := anthropic(); p.api = OpenAIChat; p.parse = nil; return p }
