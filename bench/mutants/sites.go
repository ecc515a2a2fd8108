package main

const sites = "./internal/sites"

// guardsOfSites keep the sites of one process from each other.
var guardsOfSites = []guard{
	{
		promise: "D",
		name:    "of those that had no slot the one that waits the longest has it",
		file:    "internal/jobs/turns/turns.go",
		old:     ", cmp.Compare(a.asked, b.asked))",
		without: ", cmp.Compare(b.asked, a.asked))",
		in:      "./internal/jobs/turns",
		test:    "TestAFreedSlotGoesToWhoRunsTheFewest",
	},
	{
		promise: "D",
		name:    "a slot goes to the site with the fewest runs",
		file:    "internal/jobs/turns/turns.go",
		old:     "cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.last, b.last), ",
		without: "cmp.Or(cmp.Compare(b.last, a.last), ",
		in:      "./internal/jobs/turns",
		test:    "TestAFreedSlotGoesToWhoRunsTheFewest",
	},
	{
		promise: "D",
		name:    "a run waits for a slot of the process",
		file:    "internal/jobs/worker_run.go",
		old:     "	return w.c.Turn(stop.starts)\n",
		without: "	return func() {}, nil\n",
		in:      sites,
		test:    "TestAFloodInOneSiteDelaysTheOthersByOneJob",
		only:    "sqlite",
	},
	{
		promise: "D",
		name:    "two sites do not write the same",
		file:    "internal/sites/set.go",
		old:     "if other, used := s.uses[o.What]; used {",
		without: "if other, used := s.uses[o.What]; used && other == name {",
		in:      sites,
		test:    "TestSitesShareNothingThatTheyWrite",
	},
	{
		promise: "D",
		name:    "the list names the sites of a session alone",
		file:    "internal/sites/front.go",
		old:     "		if web.HasSession(r, config.SitePath+name) {",
		without: "		if r != nil {",
		in:      sites,
		test:    "TestTheListShowsTheCallersSitesOnly",
	},
	{
		promise: "D",
		name:    "metrics of all sites are public by choice",
		file:    "internal/sites/front.go",
		old:     `	case path == "/metrics" && f.publicMetrics:`,
		without: `	case path == "/metrics":`,
		in:      sites,
		test:    "TestTheListShowsTheCallersSitesOnly",
	},
}
