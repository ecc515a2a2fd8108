package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// lowest is the score that a page needs in each category.
const lowest = 95

var categories = []string{"performance", "accessibility", "best-practices", "seo"}

// report is what is kept of Lighthouse's.
type report struct {
	scores map[string]int // by category, 0 to 100
	lost   []string       // audits that cost points
	bytes  int            // over the network
	tasks  float64        // milliseconds for which long tasks block the page
}

func read(text []byte) (report, error) {
	var raw struct {
		FinalDisplayedURL, RequestedURL string
		RuntimeError                    *struct{ Message string }
		Categories                      map[string]struct {
			Score     *float64
			AuditRefs []struct {
				ID     string
				Weight float64
			}
		}
		Audits map[string]struct {
			Score        *float64
			NumericValue float64
			DisplayValue string
		}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return report{}, fmt.Errorf("reading Lighthouse's report: %w", err)
	}
	if raw.RuntimeError != nil {
		return report{}, errors.New(raw.RuntimeError.Message)
	}
	if raw.FinalDisplayedURL != raw.RequestedURL {
		return report{}, fmt.Errorf("%s led to %s", raw.RequestedURL, raw.FinalDisplayedURL)
	}
	r := report{scores: map[string]int{}, bytes: int(raw.Audits["total-byte-weight"].NumericValue),
		tasks: raw.Audits["total-blocking-time"].NumericValue}
	for _, name := range categories {
		c, there := raw.Categories[name]
		if !there || c.Score == nil {
			return report{}, fmt.Errorf("the report has no score for %s", name)
		}
		r.scores[name] = int(math.Round(*c.Score * 100))
		for _, ref := range c.AuditRefs {
			if a := raw.Audits[ref.ID]; ref.Weight > 0 && a.Score != nil && *a.Score < 0.9 {
				r.lost = append(r.lost, strings.TrimSpace(ref.ID+" "+a.DisplayValue))
			}
		}
	}
	return r, nil
}

// middle measures several times; the report with the middle performance counts: other
// programs on the machine cost some runs points.
func middle(runs int, once func() (report, error)) (report, error) {
	var all []report
	for range runs {
		r, err := once()
		if err != nil {
			return report{}, err
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b report) int { return a.scores["performance"] - b.scores["performance"] })
	return all[len(all)/2], nil
}

// table shows what was measured, as Markdown.
func table(all []measured) string {
	var out strings.Builder
	out.WriteString("| page | screen | performance | accessibility | best practices | SEO | kB | blocked, ms |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&out, "| %s | %s |", m.page, m.screen)
		for _, name := range categories {
			fmt.Fprintf(&out, " %d |", m.scores[name])
		}
		fmt.Fprintf(&out, " %d | %.0f |\n", (m.bytes+500)/1000, m.tasks)
	}
	return out.String()
}

// tooLow names each score below the lowest that is allowed, and what cost it points.
func tooLow(all []measured) error {
	var faults []error
	for _, m := range all {
		for _, name := range categories {
			if score := m.scores[name]; score < lowest {
				faults = append(faults, fmt.Errorf("%s on %s has %d in %s, less than %d: %s", m.page, m.screen, score,
					name, lowest, strings.Join(m.lost, ", ")))
			}
		}
	}
	return errors.Join(faults...)
}
