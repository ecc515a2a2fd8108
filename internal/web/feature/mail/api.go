package mail

import (
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// mailType is what sending a mail again makes run.
const mailType = "mail.send"

func (h handlers) listMail(r *web.Request) error {
	q := MailQuery{Status: r.QueryParam("status"), Text: r.QueryParam("text")}
	return web.AnswerList(r, "mail", shown(r.View()), func(p jobs.Page) (jobs.List[Mail], error) {
		return h.log.Mails(r.Ctx(), q, p)
	})
}

func (h handlers) showMail(r *web.Request) error {
	m, err := h.oneMail(r)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, shown(r.View())(m))
}

func (h handlers) resendMail(r *web.Request) error {
	id, err := r.ID()
	if err != nil {
		return err
	}
	receipt, err := h.sendAgain(r, id)
	if err != nil {
		return err
	}
	return r.AnswerJob(id, mailType, receipt)
}

// sendAgain enqueues a mail again, if the caller may enqueue what was kept of it.
func (h handlers) sendAgain(r *web.Request, id string) (jobs.Receipt, error) {
	if err := r.MayRunType(mailType); err != nil {
		return jobs.Receipt{}, err
	}
	n, err := h.log.MailAgain(r.Ctx(), id)
	if err == nil {
		if err := r.MayRun(n.Type, n.Data); err != nil {
			return jobs.Receipt{}, err
		}
		var receipts []jobs.Receipt
		if receipts, err = r.Enqueuer().Enqueue(r.Ctx(), n); err == nil {
			return receipts[0], nil
		}
	}
	return jobs.Receipt{}, fmt.Errorf("sending mail %s again: %w", id, err)
}

func (h handlers) listSuppressions(r *web.Request) error {
	return web.AnswerList(r, "suppressions", func(s Suppression) Suppression { return s },
		func(p jobs.Page) (jobs.List[Suppression], error) {
			return h.suppressions.Suppressions(r.Ctx(), p)
		})
}

func (h handlers) suppress(r *web.Request) error {
	var x Suppression
	if err := r.Decode(&x); err != nil {
		return err
	}
	r.Audit(x.Address, x.Reason)
	if len(x.Address) < 3 || len(x.Address) > 254 {
		return web.RefuseField(http.StatusUnprocessableEntity, "address", "address must be a mail address.")
	}
	x.CreatedAt = r.Now().UTC()
	if err := h.suppressions.Suppress(r.Ctx(), x); err != nil {
		return fmt.Errorf("suppressing an address: %w", err)
	}
	return r.NoContent(http.StatusNoContent)
}

func (h handlers) unsuppress(r *web.Request) error {
	address, err := r.NameParam("address")
	if err != nil {
		return err
	}
	if err := h.suppressions.Unsuppress(r.Ctx(), address); err != nil {
		return fmt.Errorf("taking an address off the suppression list: %w", err)
	}
	return r.NoContent(http.StatusNoContent)
}

// shown is a mail for the caller: what its server said may name tokens and hosts.
func shown(v ops.Viewer) func(Mail) Mail {
	return func(m Mail) Mail {
		m.Answer, m.Problem, m.Subject = v.Text(m.Answer), v.Text(m.Problem), v.Text(m.Subject)
		m.Tries = ops.Each(m.Tries, func(t MailTry) MailTry { t.Answer = v.Text(t.Answer); return t })
		m.Others = ops.Each(m.Others, shown(v))
		return m
	}
}

func (h handlers) oneMail(r *web.Request) (Mail, error) {
	_, m, err := web.OnID(r, "looking up mail %s", h.log.Mail)
	return m, err
}
