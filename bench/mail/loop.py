# A plain loop: argv are the server's port and the number of mails. It prints the seconds.
import smtplib
import sys
import time
from email.message import EmailMessage

port, mails, body = int(sys.argv[1]), int(sys.argv[2]), sys.stdin.read()
began = time.monotonic()
with smtplib.SMTP("127.0.0.1", port) as server:
    for i in range(mails):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "noreply@example.com", f"reader{i}@example.net", f"Order {i}"
        mail.set_content("Order 12")
        mail.add_alternative(body, subtype="html")
        server.send_message(mail)
print(time.monotonic() - began)
