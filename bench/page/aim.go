package page

import "fmt"

// Aim is a figure of a report and what it should be.
type Aim struct {
	What   string
	Value  float64
	Limit  float64
	AtMost bool // the value should not exceed the limit; else not fall below it
}

// AimHead is the head of a table of aims.
var AimHead = [...]string{"what", "this run", "aim", ""}

// Cells are the aim's row of a table: what, the figure, the aim, met or missed.
func (a Aim) Cells() []string {
	sign, result := "≥", "missed"
	if a.AtMost {
		sign = "≤"
	}
	if a.AtMost && a.Value <= a.Limit || !a.AtMost && a.Value >= a.Limit {
		result = "met"
	}
	return []string{a.What, fmt.Sprintf("%.2f", a.Value), fmt.Sprintf("%s %g", sign, a.Limit), result}
}
