// Package smtptest gives tests a mail server: SMTP with STARTTLS, AUTH PLAIN, SIZE,
// 8BITMIME, SMTPUTF8 and PIPELINING (RFC 5321), which takes what the test's functions take.
//
// It is no part of the program, and no mail server: it stores and relays nothing. It
// imports nothing of the module.
//
// Invariant: a session follows the protocol's order (EHLO, AUTH, MAIL, RCPT, DATA), refuses
// what is out of turn with 503, and answers each command once.
package smtptest
