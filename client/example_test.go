package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/cmsjobs/cmsjobs/client"
)

// The CMS's database, with the driver that the program imports.
func ExampleNew() {
	db, err := sql.Open("mysql", os.Getenv("CMS_DSN"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(context.Background(), db, "mysql", client.Options{Prefix: "bb_"})
	if err != nil {
		log.Fatal(err)
	}
	_ = c
}

// A second job with the same key is not made while the first waits or runs.
func ExampleClient_Enqueue() {
	ctx := context.Background()
	var c *client.Client // of New
	receipt, err := c.Enqueue(ctx, client.Job{Type: "sitemap.generate", Payload: map[string]bool{"force": true},
		UniqueKey: "sitemap"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.ID, receipt.Existing)
}

// The job exists if the order does.
func ExampleClient_EnqueueTx() {
	ctx := context.Background()
	var db *sql.DB
	var c *client.Client // of New
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES (456)"); err != nil {
		log.Fatal(err)
	}
	job := client.Job{Type: "check_payment", Payload: map[string]string{"orderId": "456"},
		RunAt: time.Now().Add(15 * time.Minute), MaxAttempts: 5}
	if _, err := c.EnqueueTx(ctx, tx, job); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}

func ExampleNewAPI() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	stats, err := api.Stats(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Waiting)
}

// A refusal names the field and what was probably meant.
func ExampleAPI_Enqueue() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	receipt, err := api.Enqueue(context.Background(), client.Job{Type: "mail.send",
		Payload: map[string]any{"to": "user@example.com", "subject": "Hello", "body": "Hello"}})
	if errors.Is(err, client.ErrInvalid) {
		log.Fatal("the payload is wrong: ", err)
	}
	fmt.Println(receipt.ID, err)
}

// The job's data, its progress so far, and its result.
func ExampleAPI_Job() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	job, err := api.Job(context.Background(), "01a2095d-19ac-7cc8-90fc-0a5924e56868")
	if errors.Is(err, client.ErrNotFound) {
		log.Fatal("there is no such job")
	}
	fmt.Println(job.Status, string(job.Result), err)
}

// All failed mails, page by page.
func ExampleAPI_Jobs() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	filter := client.Filter{Type: "mail.send", Status: "failed", Limit: 100}
	for {
		page, err := api.Jobs(context.Background(), filter)
		if err != nil {
			log.Fatal(err)
		}
		for _, job := range page.Items {
			fmt.Println(job.ID, job.Error)
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return
		}
	}
}

func ExampleAPI_Stats() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	stats, err := api.Stats(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d wait, %.0f %% of all runs were completed\n", stats.Waiting, 100*stats.SuccessRate)
}

func ExampleAPI_Requeue() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	job, err := api.Requeue(context.Background(), "01a2095d-19ac-7cc8-90fc-0a5924e56868")
	if errors.Is(err, client.ErrConflict) {
		log.Fatal("it runs: it cannot be run again now")
	}
	fmt.Println(job.RunAt, err)
}

func ExampleAPI_Delete() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	if err := api.Delete(context.Background(), "01a2095d-19ac-7cc8-90fc-0a5924e56868"); err != nil {
		log.Fatal(err)
	}
}

// What the service does not do, and the request's id in its log.
func ExampleRefusal() {
	api := client.NewAPI("https://cms.example", os.Getenv("CMSJOBS_TOKEN"), client.APIOptions{})
	_, err := api.Enqueue(context.Background(), client.Job{Type: "mail.sned"})
	if refusal := (*client.Refusal)(nil); errors.As(err, &refusal) {
		fmt.Println(refusal)
	}
}
