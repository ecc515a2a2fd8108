package config

import "time"

// Publish says how content that is dated ahead is published.
type Publish struct {
	Watch bool          `koanf:"watch"`
	Every time.Duration `koanf:"every"`
	Mail  bool          `koanf:"mail"`
	// Dates names the column that holds the publication date of drafts, by model.
	Dates map[string]string `koanf:"date_columns"`
}

func defaultPublish() Publish {
	return Publish{Watch: true, Every: time.Minute, Dates: map[string]string{}}
}

func (p Publish) check(r *report) {
	r.atLeastFor("publish/every", p.Every, time.Second)
	for model, column := range p.Dates {
		if !columnForm.MatchString(column) {
			r.add("publish/date_columns/"+model, "%q is no name of a column", column)
		}
	}
}
