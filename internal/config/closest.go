package config

import "fmt"

// closest returns the word that is nearest to one that was written, or "" when none
// is near: at most half of its letters differ, and at most three.
func closest(written string, words []string) string {
	best, least := "", min(3, (len(written)+1)/2)+1
	for _, w := range words {
		if d := distance(written, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is how many letters to change, add or remove.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Meant is a question that ends an error, or nothing.
func Meant(written string, words []string) string {
	if w := closest(written, words); w != "" {
		return fmt.Sprintf("; did you mean %s?", w)
	}
	return ""
}
