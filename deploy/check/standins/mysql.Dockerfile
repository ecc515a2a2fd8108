FROM localhost/cmsjobs-stand-in-busybox
COPY files /opt/mysql
COPY mysql.sh /usr/local/bin/docker-entrypoint.sh
RUN mkdir -p /usr/bin /var/lib/mysql /tmp && chmod 1777 /tmp && chmod 0755 /usr/local/bin/docker-entrypoint.sh && \
    echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd && \
    for p in mysqld mysql mysqladmin; do ln -s /usr/local/bin/docker-entrypoint.sh /usr/bin/$p; done
ENV OPENSSL_CONF=/dev/null
VOLUME /var/lib/mysql
EXPOSE 3306
ENTRYPOINT ["/bin/sh", "/usr/local/bin/docker-entrypoint.sh"]
