package retention

import "time"

// horizon is how far Forecast looks.
const horizon = 2 * 366

// Forecast decides as Decide does, and says of each backup that stays when it
// goes if one verified backup of everything is made each day from now on.
func (r Rules) Forecast(all []Backup, now time.Time) []Decision {
	out := r.Decide(all, now)
	type future struct {
		Backup
		index int // in all; −1 for the future ones
	}
	var list []future
	for i, d := range out {
		if d.Keep && !all[i].Foreign {
			list = append(list, future{all[i], i})
		}
	}
	if r.Keep < 0 {
		return out
	}
	for n := 1; n <= horizon; n++ {
		at := now.Add(time.Duration(n) * 24 * time.Hour)
		list = append(list, future{Backup{Started: at, Database: true, Files: true, Complete: true, State: Verified},
			-1})
		plain := make([]Backup, len(list))
		for i, f := range list {
			plain[i] = f.Backup
		}
		var next []future
		left := 0
		for i, d := range r.Decide(plain, at) {
			switch {
			case d.Keep:
				next = append(next, list[i])
				if list[i].index >= 0 {
					left++
				}
			case list[i].index >= 0:
				out[list[i].index].Until = at
			}
		}
		if list = next; left == 0 {
			break
		}
	}
	return out
}
