// Command visit uses the admin page of a running service as a person does, in a headless
// Chromium: signs in, opens the pages, enqueues a job by the form and sees it completed. It
// fails where a script of a page throws, or a page or a part of it does not answer.
package main
