package extract

// isCommon reports everyday words of English that seldom carry a fact: verbs of
// saying and wanting, adverbs, words of politeness and of degree. w is lower case.
func isCommon(w string) bool {
	if isStop(w) || isFiller(w) {
		return true
	}
	switch w {
	case "able", "above", "absolute", "across", "add", "added", "adding", "again", "ago", "ahead", "almost", "alone", "along", "already", "alright",
		"although", "always", "amazing", "among", "amount", "anybody", "anymore", "anyone", "anything", "anyway", "anywhere", "apart",
		"apparently", "appear", "appears", "appreciate", "appreciated", "around", "aside", "ask", "asked", "asking", "aware", "away", "awesome",
		"bad", "based", "became", "become", "becomes", "becoming", "began", "begin", "beginning", "behind", "believe", "below", "best",
		"better", "between", "beyond", "big", "bigger", "biggest", "bring", "bringing", "brought", "came", "cannot", "care", "case", "cases", "cause",
		"certain", "certainly", "chance", "change", "changed", "changes", "check", "checked", "choice", "choose", "clear", "clearly", "close",
		"comes", "coming", "common", "complete", "completely", "concern", "concerned", "concerning", "concerns", "consider", "considering",
		"continue", "correct", "couldn't", "course", "curious", "current", "currently", "deal", "decent", "decided", "definite", "depending", "despite", "detail",
		"details", "different", "difficult", "doing", "done", "down", "due", "during", "earlier", "early", "easier", "easily", "easy",
		"effort", "either", "else", "end", "ended", "enjoy", "enough", "ensure", "entire", "entirely", "especially", "essential", "etc", "ever",
		"everybody", "everyone", "everything", "exact", "exactly", "example", "excellent", "except", "excited", "exciting", "expect", "expected",
		"experience", "explain", "extra", "fact", "fair", "fairly", "familiar", "fantastic", "far", "feel", "feeling", "feels", "felt", "figure", "figured",
		"final", "finally", "find", "finding", "fine", "folks", "follow", "following", "forward", "found", "frankly", "frequently", "full",
		"fully", "fun", "further", "future", "general", "generally", "gets", "given", "gives", "giving", "glad", "goes", "gone", "gotten",
		"grateful", "greatly", "guess", "guys", "hadn't", "half-way", "happen", "happened", "happening", "happens", "happy",
		"hard", "hardly", "hasn't", "haven't", "having", "hear", "heard", "held", "help", "helped", "helpful", "helping", "hence", "highly", "hold",
		"honest", "hope", "hopeful", "hopefully", "hoping", "hours'", "however", "huge", "idea", "ideal", "ideally", "ideas", "imagine",
		"immediately", "important", "importantly", "including", "indeed", "info", "information", "initial", "initially", "inside", "instance",
		"instead", "interest", "interested", "interesting", "issue", "issues", "itself", "job", "keep", "keeping", "keeps", "kept", "key", "kinds", "knew",
		"knowing", "known", "knows", "large", "largely", "last", "late", "lately", "later", "latest", "lead", "leads", "least", "leave", "leaving",
		"led", "left", "less", "lets", "letting", "level", "likely", "line", "little", "long", "longer", "looked", "looking", "lots", "love", "loved", "loving",
		"luckily", "main", "mainly", "major", "makes", "making", "manage", "managed", "matter", "matters", "maximum", "meaning", "means", "meant",
		"mention", "mentioned", "mentioning", "merely", "mind", "moment", "moments", "moreover", "mostly", "move", "moving", "multiple", "name's",
		"near", "nearly", "necessarily", "necessary", "needed", "needing", "needs", "neither", "never", "nevertheless", "new", "next", "nobody", "none",
		"nonetheless", "nope", "nor", "normal", "normally", "nothing", "notice", "noticed", "number", "numerous", "obvious", "occasionally",
		"often", "old", "once", "ones", "ongoing", "onwards", "open", "opportunity", "option", "options", "order", "otherwise", "ought", "outside", "overall",
		"own", "part", "particular", "particularly", "parts", "past", "people", "perfect", "perfectly", "perhaps", "person", "personal",
		"personally", "piece", "place", "places", "plan", "plus", "point", "points", "possible", "possibly", "potential", "potentially", "prefer", "presumably", "previous",
		"previously", "probably", "problem", "problems", "process", "proper", "properly", "provide", "provided", "provides", "providing", "purpose", "question", "questions", "quick",
		"quickly", "rather", "reach", "reached", "ready", "real", "realize", "realized", "reason", "reasons", "recall", "recent", "recently", "regard",
		"regarding", "regards", "relatively", "relevant", "remember", "respect", "rest", "result", "results", "run", "running", "said", "saw", "saying", "says", "seeing", "seem",
		"seemed", "seems", "seen", "sense", "sent", "separate", "serious", "set", "several", "share", "she's", "short", "shouldn't", "show",
		"showed", "shows", "side", "similar", "simple", "simply", "since", "situation", "situations", "small", "smooth", "smoothly", "somebody", "somehow", "someone",
		"something", "sometimes", "somewhere", "soon", "sorry", "sorts", "sound", "sounds", "special", "specific", "specifically", "spend", "spent",
		"standard", "start", "started", "starting", "starts", "stay", "step", "steps", "stop", "story", "straight", "strong", "stuff",
		"stuck", "such", "suddenly", "suggest", "suppose", "supposed", "surely", "surprise", "surprised", "taken", "takes", "taking", "talk", "talked",
		"talking", "tell", "telling", "tend", "term", "terms", "that'd", "that'll", "themselves", "therefore", "they'd", "they'll", "they're", "they've", "thinking",
		"thought", "thoughts", "throughout", "thus", "till", "time", "times", "today", "together", "told", "tomorrow", "tonight", "took", "top", "total", "totally", "touch", "toward",
		"towards", "tried", "true", "truth", "try", "trying", "turn", "turned", "turns", "twice", "type", "types", "typical", "typically", "understand", "understanding",
		"unfortunately", "unless", "unlike", "until", "upon", "usual", "usually", "various", "wait", "waiting", "wanna", "wants",
		"wasn't", "watch", "ways", "we'd", "week's", "went", "weren't", "what's", "whatever", "whenever", "whether", "who's", "whoever", "whole", "whose", "willing",
		"wish", "within", "without", "won't", "wonder", "wonderful", "wondering", "word", "words", "work", "worked", "working", "works", "world", "worried", "worry", "worth", "wouldn't",
		"wrong", "yesterday", "yet", "you'd", "you'll", "you've", "yours", "yourself", "thrilled", "hopes", "wanting", "puzzling", "sort-of", "apologize",
		"assume", "assuming", "aspect", "aspects", "attention", "basic", "basis", "besides", "beautiful", "beautifully", "brand-new", "ability", "allow",
		"allows", "allowed", "anxious", "appropriate", "area", "attempt", "available", "bothered", "briefly", "call", "called", "clarify", "comfortable", "confident", "confusing", "confused", "consistently",
		"constantly", "couple", "crucial", "dealing", "delighted", "direct", "directly", "double", "doubt", "eager", "effectively", "encountered", "entirety", "equally", "eventually", "everyday", "evident", "exist",
		"existing", "extent", "fall", "feedback", "fit", "focus", "form", "former", "forth", "frustrated", "frustrating", "genuinely", "grab", "hit", "impressed", "impressive",
		"improve", "incredible", "inquire", "involved", "isn't", "keen", "lack", "laugh", "limited", "live", "longer-term", "meantime", "middle", "minor", "miss", "missing", "noted",
		"noticing", "nicely", "occur", "offer", "offering", "offers", "okey", "original", "originally", "patience", "pay", "perspective", "pick", "pleasant", "pleased", "position", "positive", "present", "prior", "promptly", "proud",
		"pull", "push", "quality", "random", "range", "rare", "read", "reading", "reasonable", "reasonably", "receive", "reflect", "related", "rely", "remain", "remaining", "remains", "repeat", "request", "respond", "response", "return-trip",
		"reverse", "save", "seriously", "serve", "settle", "significant", "significantly", "slight", "slightly", "solid", "solution", "solve", "stand", "state", "stick", "subject", "success", "support", "talks",
		"thankful", "thankfully", "that", "thorough", "though", "thrown", "topic", "traditional", "transparent", "trouble", "ultimate", "ultimately", "unclear", "unexpected", "updated", "upset", "value", "wide", "wise", "wondered", "worrying", "year's":
		return true
	}
	return false
}
