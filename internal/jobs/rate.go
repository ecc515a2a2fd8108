package jobs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxRateStarts bounds a Rate's Starts: each start of the last length of time is a
// row of the database.
const MaxRateStarts = 1000

// Rate is how many jobs of a type may begin within a length of time, in all
// processes together. It counts in whole seconds of the database's clock: in as many
// consecutive seconds as Per has never more than Starts begin. A repeated attempt is a
// start; a job that is released before it began is none.
type Rate struct {
	Starts int
	Per    time.Duration
}

// PermitsOf names the permits that starts of a type take at this rate, in cmsjobs_permits.
func (r Rate) PermitsOf(jobType string) string { return jobType + " " + r.Per.String() }

// ParseRate reads "10/s", "600/h", "5/30s": starts, and the length of time.
func ParseRate(text string) (Rate, error) {
	wrong := func() (Rate, error) {
		return Rate{}, fmt.Errorf("%q is no rate: write it like 10/s, 100/m, 600/h, 5000/d or 5/30s", text)
	}
	starts, per, ok := strings.Cut(strings.TrimSpace(text), "/")
	if !ok {
		return wrong()
	}
	var r Rate
	var err error
	if r.Starts, err = strconv.Atoi(strings.TrimSpace(starts)); err != nil {
		return wrong()
	}
	per = strings.TrimSpace(per)
	units := map[string]string{"s": "1s", "second": "1s", "m": "1m", "minute": "1m", "h": "1h", "hour": "1h",
		"d": "24h", "day": "24h"}
	if r.Per, err = time.ParseDuration(cmp.Or(units[per], per)); err != nil {
		return wrong()
	}
	return r, r.Validate()
}

// ParseRates reads several rates: those that can be read, and why the first of the
// others cannot.
func ParseRates(texts []string) (list []Rate, err error) {
	for _, text := range texts {
		r, unread := ParseRate(text)
		if unread != nil {
			err = cmp.Or(err, unread)
			continue
		}
		list = append(list, r)
	}
	return list, err
}

// RateTexts are the policy's rates as ParseRates reads them.
func (p Policy) RateTexts() (list []string) {
	for _, r := range p.Rates {
		list = append(list, r.String())
	}
	return list
}

// Validate says what cannot be meant.
func (r Rate) Validate() error {
	switch {
	case r.Starts < 1 || r.Starts > MaxRateStarts:
		return fmt.Errorf("%d starts: a rate has 1 to %d of them; write 3600/h as 60/m", r.Starts, MaxRateStarts)
	case r.Per < time.Second || r.Per > 24*time.Hour || r.Per%time.Second != 0:
		return fmt.Errorf("a rate is for whole seconds, up to a day, not for %s", r.Per)
	}
	return nil
}

// String is the rate as ParseRate reads it: "10/s".
func (r Rate) String() string {
	switch r.Per {
	case time.Second:
		return strconv.Itoa(r.Starts) + "/s"
	case time.Minute:
		return strconv.Itoa(r.Starts) + "/m"
	case time.Hour:
		return strconv.Itoa(r.Starts) + "/h"
	case 24 * time.Hour:
		return strconv.Itoa(r.Starts) + "/d"
	}
	return fmt.Sprintf("%d/%s", r.Starts, r.Per)
}
