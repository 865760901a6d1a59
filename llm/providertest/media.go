package providertest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // sizes
	_ "image/jpeg" // sizes
	_ "image/png"  // sizes
	"net/http"
	"slices"
	"strings"
)

// Bounds of images: bytes of their base64, and pixels of a side.
const (
	maxImage = 5 << 20
	maxSide  = 8000
)

// checkImage returns what is wrong with an image in Anthropic's words.
func checkImage(mediaType, data string) string {
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mediaType) {
		return "media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
	}
	if len(data) > maxImage {
		return fmt.Sprintf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(data), maxImage)
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "invalid base64 data"
	}
	if got := http.DetectContentType(b); got != mediaType {
		if !strings.HasPrefix(got, "image/") {
			return "Could not process image"
		}
		return fmt.Sprintf("The image was specified using the %s media type, but the image appears to be a %s image", mediaType, got)
	}
	if mediaType == "image/webp" {
		return "" // no decoder in the standard library
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return "Could not process image"
	}
	if c.Width > maxSide || c.Height > maxSide {
		return "At least one of the image dimensions exceed max allowed size: 8000 pixels"
	}
	return ""
}

// checkPDF returns what is wrong with a document.
func checkPDF(data string) string {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "invalid base64 data"
	}
	if !bytes.HasPrefix(b, []byte("%PDF-")) {
		return "The PDF specified was not valid."
	}
	return ""
}

// dataURL splits a data URL.
func dataURL(url string) (mediaType, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ";base64,")
}
