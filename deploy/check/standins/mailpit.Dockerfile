FROM localhost/cmsjobs-stand-in-busybox
COPY root /
COPY maildev /opt/maildev
RUN mkdir -p /tmp && chmod 1777 /tmp
EXPOSE 1025 8025
ENTRYPOINT ["/usr/bin/node", "/opt/maildev/bin/maildev", "--smtp", "1025", "--web", "8025"]
