package web

import (
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// The lists of the API.
type (
	JobList        = ops.ListView[ops.JobView]
	S1List         = ops.ListView[compat.S1Job]
	S2List         = ops.ListView[compat.S2Job]
	RunList        = ops.ListView[ops.RunView]
	TickList       = ops.ListView[ops.TickView]
	AuditEntryList = ops.ListView[AuditEntry]
	GroupList      = ops.Items[ops.FailureGroupView]
	TypeList       = ops.Items[ops.TypeView]
	QueueList      = ops.Items[ops.QueueView]
	WorkerList     = ops.Items[ops.WorkerView]
	ScheduleList   = ops.Items[ops.ScheduleView]
	SettingList    = ops.Items[Setting]
	TokenList      = ops.Items[Token]
)
