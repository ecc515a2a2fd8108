package web_test

import (
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/templates"
)

// token is a colour of the palette; themes are light and dark.
var token = regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]{3,8}), (#[0-9a-f]{3,8})\)`)

// palette reads the tokens of admin.css, by theme and name.
func readPalette(t *testing.T) [2]map[string]string {
	css, err := fs.ReadFile(templates.Admin(), "assets/admin.css")
	if err != nil {
		t.Fatal(err)
	}
	all := [2]map[string]string{{"white": "#ffffff"}, {"white": "#ffffff"}}
	for _, found := range token.FindAllStringSubmatch(string(css), -1) {
		all[0][found[1]], all[1][found[1]] = found[2], found[3]
	}
	return all
}

// luminance is the relative luminance of WCAG 2 of an opaque colour.
func luminance(t *testing.T, colour string) float64 {
	hex := strings.TrimPrefix(colour, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 6 {
		t.Fatalf("%q is no opaque colour", colour)
	}
	part := func(shift uint) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

func contrast(t *testing.T, a, b string) float64 {
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// TestThePaletteHasContrast computes WCAG's ratios of what stands on what, in both
// themes: 4.5 for text, 3 for borders of fields and marks of charts.
func TestThePaletteHasContrast(t *testing.T) {
	const text, mark = 4.5, 3
	grounds := map[string][]string{
		"text":   {"bg", "surface", "sunken", "raised", "warn-soft", "bad-soft", "ok-soft", "accent-soft"},
		"text-2": {"bg", "surface", "sunken", "raised"}, "link": {"bg", "surface", "sunken", "raised", "accent-soft"},
		"ok": {"ok-soft", "surface"}, "warn": {"warn-soft", "surface"}, "bad": {"bad-soft", "surface", "bg"},
		"busy": {"busy-soft", "surface"}, "idle": {"idle-soft", "surface"}, "php": {"php-soft"},
		"white": {"accent", "bad-fill"},
	}
	marks := map[string][]string{"line-strong": {"surface"}, "focus": {"bg", "surface"}}
	for _, name := range []string{"c-ok", "c-warn", "c-bad", "c-part", "c-1", "c-2", "c-3", "c-4", "c-5", "c-6"} {
		marks[name] = []string{"surface"}
	}
	for i, theme := range readPalette(t) {
		name := []string{"light", "dark"}[i]
		check := func(pairs map[string][]string, least float64) {
			for front, backs := range pairs {
				for _, back := range backs {
					if theme[front] == "" || theme[back] == "" {
						t.Fatalf("there is no --%s or no --%s", front, back)
					}
					if ratio := contrast(t, theme[front], theme[back]); ratio < least {
						t.Errorf("%s: %s on %s has %.2f, less than %.1f", name, front, back, ratio, least)
					}
				}
			}
		}
		check(grounds, text)
		check(marks, mark)
	}
	if ratio := contrast(t, "#000", "#ffffff"); math.Abs(ratio-21) > 0.001 {
		t.Errorf("black on white has %f", ratio)
	}
}

// colourOf finds colours; those of tokens are declared in the first rule of the sheet.
var colourOf = regexp.MustCompile(`#[0-9a-f]{3,8}\b`)

// TestColoursAreTokens looks for colours outside of the palette; white text on what
// is filled, translucent white and the dark bar of a selection are named here.
func TestColoursAreTokens(t *testing.T) {
	css, err := fs.ReadFile(templates.Admin(), "assets/admin.css")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(css), "\n}\n")
	for _, colour := range colourOf.FindAllString(rules, -1) {
		switch colour {
		case "#fff", "#ffffff1a", "#ffffff33", "#1b2622", "#2a3531", "#ffb4ac":
		default:
			t.Errorf("%s is no token", colour)
		}
	}
}
