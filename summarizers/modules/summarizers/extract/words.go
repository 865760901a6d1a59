package extract

// isStop reports words that carry no fact of their own. w is lower case.
func isStop(w string) bool {
	switch w {
	case "the", "and", "for", "are", "was", "were", "that", "this", "with", "from", "have", "has", "had", "not",
		"but", "you", "your", "our", "its", "it's", "they", "them", "their", "there", "then", "than", "what", "when",
		"where", "which", "who", "how", "why", "will", "would", "could", "should", "can", "can't", "may", "might",
		"must", "shall", "does", "did", "don't", "doesn't", "didn't", "isn't", "aren't", "wasn't", "been", "being",
		"into", "onto", "over", "under", "about", "after", "before", "because", "while", "also", "just", "very",
		"really", "some", "any", "all", "each", "every", "more", "most", "much", "many", "such", "only", "own", "same",
		"other", "another", "here", "now", "out", "off", "too", "yes", "yeah", "okay", "well", "like", "get", "got",
		"getting", "let", "let's", "i'm", "i've", "i'd", "i'll", "we're", "we've", "we'll", "you're", "that's",
		"there's", "one", "going", "gonna", "want", "wanted", "know", "think", "thing", "things", "make", "made",
		"see", "say", "said", "way", "lot", "kind", "sort", "maybe", "actually", "basically", "right", "sure", "even",
		"still", "though", "quite", "pretty", "mean", "thanks", "thank", "please", "hello", "hey", "great", "good",
		"nice", "cool", "both", "his", "her", "him", "she", "myself", "these", "those", "through", "again", "back",
		"come", "use", "using", "used", "need", "take", "look", "looks", "give", "gave", "put", "bit", "few", "him's",
		"uh", "um", "hmm", "mm", "mmm", "oh", "ah", "eh", "huh", "ok", "hi", "an", "as", "at", "be", "by", "do", "he",
		"if", "in", "is", "it", "me", "my", "no", "of", "on", "or", "so", "to", "up", "us", "we", "am", "go", "i":
		return true
	}
	return len(w) < 2
}

// isNumberWord reports numbers that are written out.
func isNumberWord(w string) bool {
	switch w {
	case "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
		"fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty",
		"sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "billion", "dozen", "half", "twice",
		"third", "quarter", "daily", "weekly", "monthly", "yearly", "first", "second":
		return true
	}
	return false
}

// isFiller reports words that can be left out of prose without changing what it
// says.
func isFiller(w string) bool {
	switch w {
	case "um", "uh", "uhm", "hmm", "mm", "mmm", "mm-hmm", "uh-huh", "really", "actually", "basically", "honestly",
		"literally", "definitely", "absolutely", "totally", "truly", "super", "incredibly", "extremely", "seriously",
		"simply", "quite", "very", "kinda", "yeah", "essentially", "obviously", "somewhat":
		return true
	}
	return false
}

// isClauseWord reports words before which a long sentence may be cut, after a
// comma.
func isClauseWord(w string) bool {
	switch w {
	case "and", "but", "so", "because", "which", "though", "although", "while", "since", "or", "then", "where", "when",
		"who", "especially", "including", "plus", "as", "if", "with", "not", "i", "i'm", "i've", "i'd", "we", "it", "it's", "they",
		"that", "you", "my", "for", "the":
		return true
	}
	return false
}

func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
