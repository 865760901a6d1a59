package ledger

// Bounds of a ledger. Together they keep it below about a megabyte, whatever the log holds.
const (
	maxNames   = 8192
	keptNames  = 6144
	maxPath    = 512
	maxPaths   = 64
	maxKey     = 300
	maxLine    = 240
	maxDefined = 24
	maxCalls   = 256

	maxRequests   = 300
	maxRules      = 120
	maxFindings   = 250
	maxFiles      = 2000
	maxCommands   = 300
	maxErrors     = 100
	maxCommits    = 200
	maxLookups    = 100
	maxTasks      = 200
	maxSteps      = 80
	maxValues     = 3000
	maxStatements = 1500

	maxFirst    = 12 << 10 // bytes of the first and latest request
	maxRequest  = 1200     // and of those between
	maxSentence = 400
	maxText     = 2400 // the agent's latest text
	maxStep     = 600
	maxOutcome  = 400
)
