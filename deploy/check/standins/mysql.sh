#!/bin/sh
# The entry point of the stand-in for the image mysql, and, under their names, its programs.
set -eu
opt=/opt/mysql
program() {
  name=$1; shift; folder=bin
  if [ "$name" = mysqld ]; then
    folder=sbin
    set -- --no-defaults --user=root --basedir=$opt/usr --datadir=/var/lib/mysql --socket=/tmp/mysql.sock --mysqlx=OFF --secure-file-priv=NULL \
      --lc-messages-dir=$opt/usr/share/mysql --character-sets-dir=$opt/usr/share/mysql/charsets "$@"
  elif [ "$name" = mysql ]; then set -- --no-defaults --socket=/tmp/mysql.sock "$@"; fi
  lib=$(dirname $opt/usr/lib/*/ld-linux*.so.?)
  exec "$lib"/ld-linux*.so.? --library-path "$lib:$lib/mysql/private" $opt/usr/$folder/"$name" "$@"
}
called=$(basename "$0")
case $called in mysqld | mysql | mysqladmin) program "$called" "$@" ;; esac

if [ ! -d /var/lib/mysql/mysql ]; then
  mysqld --initialize-insecure
  mysqld --skip-networking "$@" & server=$!
  until mysqladmin --socket=/tmp/mysql.sock -uroot ping >/dev/null 2>&1; do kill -0 $server; sleep 0.2; done
  {
    echo "CREATE DATABASE \`$MYSQL_DATABASE\`; CREATE USER '$MYSQL_USER'@'%' IDENTIFIED BY '$MYSQL_PASSWORD';"
    echo "GRANT ALL ON \`$MYSQL_DATABASE\`.* TO '$MYSQL_USER'@'%';"
  } | mysql -uroot
  for f in /docker-entrypoint-initdb.d/*.sql; do mysql -uroot --default-character-set=utf8mb4 "$MYSQL_DATABASE" <"$f"; done
  {
    echo "CREATE USER root@'%' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
    echo "ALTER USER root@localhost IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';"
  } | mysql -uroot
  kill $server; wait $server
fi
program mysqld "$@"
