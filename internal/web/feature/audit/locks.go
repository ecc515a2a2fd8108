package audit

import (
	"errors"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Lock is shown as access keeps it.
type Lock = access.Lock

// LockList is a list of locks.
type LockList struct {
	Items []Lock `json:"items"`
}

func listLocks(req *web.Request) error {
	list, err := req.Gate().Store.Locks(req.Ctx())
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, LockList{list})
}

func unlock(req *web.Request) error {
	id, err := req.ID()
	if err != nil {
		return err
	}
	if err := lift(req, id); err != nil {
		return err
	}
	return req.NoContent(http.StatusNoContent)
}

func unlockByForm(req *web.Request) error {
	id, err := req.ID()
	if err != nil {
		return err
	}
	if err := lift(req, id); err != nil {
		return err
	}
	return req.Back("/admin/audit", "locks.lifted")
}

// lift lifts a lock. One that ended meanwhile is lifted.
func lift(req *web.Request, id string) error {
	if err := req.Gate().Store.Unlock(req.Ctx(), id); !errors.Is(err, jobs.ErrNotFound) {
		return err
	}
	return nil
}
