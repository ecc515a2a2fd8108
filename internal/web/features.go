package web

// What an installation may lack, by the name that people read when it does. A
// route that needs one says so, and its handler may rely on it.
const (
	needsSettings  = "list of settings"
	needsWorkers   = "list of workers"
	needsTicker    = "cron route"
	needsSchedules = "schedule"
	needsHistory   = "history"
	needsQueues    = "control of queues"
)

// missing are the parts that are not configured.
func (c Config) missing() map[string]bool {
	all := map[string]bool{needsSettings: c.Settings == nil, needsWorkers: c.Workers == nil, needsTicker: c.Ticker == nil,
		needsSchedules: c.Schedules == nil, needsHistory: c.History == nil, needsQueues: c.Queues == nil}
	for _, f := range c.Features {
		for _, name := range f.Missing {
			all[name] = true
		}
	}
	return all
}
