package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// ErrNoOrder says that an order is not there: it was never given, is for
// another type, or was removed when it was old.
var ErrNoOrder = errors.New("there is no such order")

// ErrOrderUsed says that an order was carried out before, and works once.
var ErrOrderUsed = errors.New("the order was carried out before; ask for the work again")

// Order is what a job of an internal type is to do. The job's row holds its ID
// only, so that nobody makes such a job by writing a row.
type Order struct {
	ID      string
	Type    string
	Payload json.RawMessage
	Created time.Time
	// Used is when it was carried out; zero while it may still be.
	Used time.Time
}

// OrderBook keeps orders.
type OrderBook interface {
	// Order finds one by its ID; ErrNoOrder when it is not there.
	Order(ctx context.Context, id string) (Order, error)
	// Use marks an order as carried out; ErrOrderUsed when it is already.
	Use(ctx context.Context, id string) error
}

// Internal says how an internal type is registered.
type Internal struct {
	// Book may be nil where types are only listed.
	Book  OrderBook
	Maker Maker
	// Rows lets a row carry the payload itself instead of an order.
	Rows bool
}

var orderID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// OrderData is the data of a job that carries out the order with this ID.
func OrderData(id string) json.RawMessage { return json.RawMessage(`{"order":"` + id + `"}`) }

// OrderOf reads the ID of the order that data names, "" when data is anything
// but the name of an order.
func OrderOf(data json.RawMessage) string {
	var keys map[string]string
	if json.Unmarshal(data, &keys) != nil || len(keys) != 1 || !orderID.MatchString(keys["order"]) {
		return ""
	}
	return keys["order"]
}

// HandleInternal registers fn to run jobs of type k whose payload lies in an
// order. A job that names no order of this type fails for good. It panics
// where Handle does.
func HandleInternal[P any](r *Registry, in Internal, k Kind[P], fn func(context.Context, Job, P) error) {
	Handle(r, k, fn)
	e := r.entries[k.Name]
	run := e.Run
	e.Maker = in.Maker
	e.Run = func(ctx context.Context, j Job) error {
		id := OrderOf(j.Data)
		if id == "" && in.Rows {
			return run(ctx, j)
		}
		o, err := in.order(ctx, k.Name, id)
		if err != nil {
			return err
		}
		j.Data = o.Payload
		return run(context.WithValue(ctx, orderKey{}, usable{in.Book, id}), j)
	}
	r.entries[k.Name] = e
}

// order finds what a job is to do, or says for good that there is nothing.
func (in Internal) order(ctx context.Context, kind, id string) (Order, error) {
	if id == "" || in.Book == nil {
		return Order{}, Permanent(fmt.Errorf("jobs of %s are made by the service itself: a row or a request cannot "+
			"say what they do", kind))
	}
	o, err := in.Book.Order(ctx, id)
	switch {
	case errors.Is(err, ErrNoOrder), err == nil && o.Type != kind:
		return Order{}, Permanent(fmt.Errorf("the order %s of %s: %w; ask for the work again", id, kind, ErrNoOrder))
	case err != nil:
		return Order{}, fmt.Errorf("reading the order %s: %w", id, err)
	case !o.Used.IsZero():
		return Order{}, Permanent(fmt.Errorf("the order %s of %s: %w", id, kind, ErrOrderUsed))
	}
	return o, nil
}

type orderKey struct{}

// usable is the order that a run carries out.
type usable struct {
	book OrderBook
	id   string
}

// UseOrder marks the order of the running job as carried out: from here on no
// job does it again. It fails for good when another run was first. A job
// without an order has none to mark.
func UseOrder(ctx context.Context) error {
	u, there := ctx.Value(orderKey{}).(usable)
	if !there {
		return nil
	}
	err := u.book.Use(ctx, u.id)
	if errors.Is(err, ErrOrderUsed) || errors.Is(err, ErrNoOrder) {
		return Permanent(fmt.Errorf("the order %s: %w", u.id, err))
	}
	if err != nil {
		return fmt.Errorf("marking the order %s as carried out: %w", u.id, err)
	}
	return nil
}
