package ledger

import (
	"strings"
	"unicode"
)

// isCommon reports a word of lower case that carries no fact: those of four letters and more that are the most common in
// English talk. Shorter ones do not count in the first place.
func isCommon(low string) bool {
	switch low {
	case "that", "this", "with", "have", "from", "they", "what", "your", "when", "would", "there", "their", "which", "about", "could", "other", "were",
		"just", "like", "them", "than", "then", "some", "into", "know", "think", "going", "really", "right", "yeah", "okay", "also", "because", "been",
		"being", "does", "doesn", "don't", "didn't", "that's", "it's", "i'm", "i've", "you're", "we're", "they're", "there's", "these", "those", "where",
		"will", "well", "want", "make", "more", "most", "much", "very", "only", "over", "such", "even", "should", "still", "something", "anything",
		"things", "thing", "kind", "maybe", "here", "after", "before", "actually", "basically", "mean", "sort", "little", "again", "same", "every",
		"while", "through", "many", "first", "good", "great", "sure", "thanks", "thank", "please", "need", "time", "people", "said", "says", "tell",
		"talk", "look", "looking", "come", "came", "back", "take", "took", "give", "gave", "done", "doing", "made", "say", "see", "get", "got", "let",
		"lot", "bit", "way":
		return true
	}
	return false
}

// isCardinal reports a word that counts as a number.
func isCardinal(low string) bool {
	switch low {
	case "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
		"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "dozen", "three", "four", "five",
		"six", "twice", "half", "double":
		return true
	}
	return false
}

// isNumberWord reports a number, or a day of the week, which counts as one but is a name.
func isNumberWord(low string) bool {
	switch low {
	case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
		return true
	}
	return isCardinal(low)
}

// contentWords are the words of a text that may carry a fact, in lower case.
func contentWords(s string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		low := strings.ToLower(w)
		if isFactWord(w, low) {
			out = append(out, low)
		}
	}
	return out
}

// isPlain reports a word of lower case that carries no fact, also one that is no unit behind a number, and no name in
// front of one.
func isPlain(low string) bool {
	switch low {
	case "of", "in", "to", "on", "at", "is", "it", "as", "an", "are", "and", "the", "for", "but", "not", "was", "per", "by", "if", "or", "so", "we",
		"he", "she", "you", "our", "had", "has", "all", "can", "did", "who", "off", "up", "do", "no", "my", "me", "us", "him", "her", "its", "from", "one",
		"two", "out", "own", "any", "now", "too", "yet", "new", "nor", "few", "how", "why", "his", "this", "i'm", "it's":
		return true
	}
	return isCommon(low)
}

// leastWord is how long a word is, in bytes, that is a fact without being a number.
const leastWord = 4

// isFactWord reports a word that is no common one: numbers, and words of four letters and more.
func isFactWord(w, low string) bool {
	if w[0] >= '0' && w[0] <= '9' {
		return true
	}
	if w[0] >= 0x80 {
		return true
	}
	return len(w) >= leastWord && !isCommon(low) || isNumberWord(low)
}
