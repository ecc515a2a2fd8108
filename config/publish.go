package config

import "time"

// Publish says how content that is dated ahead is published.
type Publish struct {
	Watch bool          `koanf:"watch"`
	Every time.Duration `koanf:"every"`
	// Probe is how often content is looked at where no change feed tells of it; 0: every
	// Every only.
	Probe time.Duration `koanf:"probe"`
	Mail  bool          `koanf:"mail"`
	// Dates names the column that holds the publication date of drafts, by model.
	Dates map[string]string `koanf:"date_columns"`
}

func defaultPublish() Publish {
	return Publish{Watch: true, Every: time.Minute, Probe: time.Second, Dates: map[string]string{}}
}

func (p Publish) check(r *report) {
	r.atLeastFor("publish/every", p.Every, time.Second)
	if p.Probe != 0 {
		r.atLeastFor("publish/probe", p.Probe, 100*time.Millisecond)
	}
	for model, column := range p.Dates {
		if !columnForm.MatchString(column) {
			r.add("publish/date_columns/"+model, "%q is no name of a column", column)
		}
	}
}
