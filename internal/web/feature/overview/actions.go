package overview

import (
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// quickAction is what people come for: a form that starts a job, or a link. The
// route behind it checks the right again.
type quickAction struct {
	Icon, Key     string // of the text
	Path          string
	Type, Payload string // of the job that a form starts; "" is a link
	Main          bool
	Apart         bool // stands after a line
}

// quickActions are those that the person may do and that this service can.
func quickActions(req *web.Request) []quickAction {
	var list []quickAction
	for _, a := range []quickAction{
		{Icon: "backups", Key: "quick.backup", Path: "/admin/start", Type: "backup.generate", Main: true},
		{Icon: "sitemap", Key: "quick.sitemap", Path: "/admin/start", Type: "sitemap.generate", Payload: `{"force":true}`},
		{Icon: "bolt", Key: "quick.cache", Path: "/admin/start", Type: "cache.clear"},
	} {
		if req.Known(a.Type) && req.May(access.Enqueue) {
			list = append(list, a)
		}
	}
	if req.May(access.Enqueue) {
		if req.Known("mail.send") {
			list = append(list, quickAction{Icon: "send", Key: "quick.mail", Path: "/admin/enqueue?type=mail.send"})
		}
		list = append(list, quickAction{Icon: "plus", Key: "quick.enqueue", Path: "/admin/enqueue", Apart: true})
	}
	if req.May(access.Operate) {
		list = append(list, quickAction{Icon: "pause", Key: "quick.pause", Path: "/admin/queues"})
	}
	return list
}

// fixButton is what repairs a condition: a form, or the page where people do it.
type fixButton struct {
	Key, Path     string
	Post          bool
	Type, Payload string // of a job that repairs it
	Scope         string // that a form needs
}

// fixOf is the button of a condition.
func fixOf(x web.Condition) fixButton {
	start := func(key, jobType string) fixButton {
		return fixButton{Key: key, Path: "/admin/start", Post: true, Type: jobType, Scope: string(access.Enqueue)}
	}
	switch x.Name {
	case "no_backup":
		return start("quick.backup", "backup.generate")
	case "verification_old":
		return start("backups.verify", "backup.verify")
	case "stalled_jobs", "history_growing":
		return start("fix.clean", "queue.clean")
	}
	if x.Page == "" {
		return fixButton{}
	}
	return fixButton{Key: "fix.show", Path: x.Page}
}
