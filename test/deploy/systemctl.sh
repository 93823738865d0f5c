#!/bin/bash
# Stands for systemd on the machines of operating.test.ts: starts and ends the units petrel@<role> as their file says.
set -eu
verb=$1; shift
if [ "$1" = --now ]; then shift; fi
stop() {
  local pid; pid=$(cat "/run/$1.pid" 2>/dev/null) || return 0
  kill -TERM "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  rm "/run/$1.pid"
}
start() {
  local role=${1#petrel@} unit=/etc/systemd/system/petrel@.service line
  mkdir -p /var/lib/petrel; chown petrel:petrel /var/lib/petrel
  (
    set -a
    while read -r line; do eval "export $line"; done < <(sed -n 's/^Environment=//p' $unit)
    . /etc/petrel/petrel.env
    if [ -e "/etc/petrel/$role.env" ]; then . "/etc/petrel/$role.env"; fi
    cd "$(sed -n 's/^WorkingDirectory=//p' $unit)"
    exec setsid setpriv --reuid=petrel --regid=petrel --clear-groups --no-new-privs \
      $(sed -n "s/^ExecStart=//p" $unit | sed "s/%i/$role/") </dev/null >>"/var/log/petrel-$role.log" 2>&1
  ) &
  echo $! >"/run/$1.pid"
}
for unit; do
  case $verb in
    enable) start "$unit" ;;
    disable) stop "$unit" ;;
    restart) stop "$unit"; start "$unit" ;;
    *) echo "systemctl $verb is not known" >&2; exit 1 ;;
  esac
done
