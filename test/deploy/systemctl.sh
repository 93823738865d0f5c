#!/bin/bash
# Stands in for systemd on the machines of operating.long.test.ts: starts, stops and reloads services by their unit files.
set -eu
verb=$1; shift
if [ "${1:-}" = --now ]; then shift; fi
# Prints the values of a setting in the file of $unit, with %i replaced by its instance.
of() {
  local place file=${unit%%@*}
  case $unit in *@*) file=$file@ ;; esac
  for place in /etc/systemd/system /lib/systemd/system; do
    if [ -e "$place/$file.service" ]; then sed -n "s/^$1=//p" "$place/$file.service" | sed "s/%i/${unit##*@}/g"; return; fi
  done
  echo "systemctl: no unit $unit" >&2; return 1
}
pid_file() { echo "/run/unit-$unit.pid"; }
settings() {
  local line file
  set -a
  while read -r line; do eval "export $line"; done < <(of Environment)
  while read -r file; do if [ "${file#-}" = "$file" ] || [ -e "${file#-}" ]; then . "${file#-}"; fi; done < <(of EnvironmentFile)
  set +a
}
stop() {
  local pid; pid=$(cat "$(pid_file)" 2>/dev/null) || return 0
  rm "$(pid_file)"
  kill -TERM "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}
# Waits until the process with this pid or a child of it listens on a TCP port, at most 60 s.
ready() {
  local tries pid sockets
  for ((tries = 0; tries < 600; tries++)); do
    sockets=$(awk '$4 == "0A" { print "socket:[" $10 "]" }' /proc/net/tcp /proc/net/tcp6)
    for pid in "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
      if [ -n "$sockets" ] && readlink "/proc/$pid"/fd/* 2>/dev/null | grep -qxF "$sockets"; then return; fi
    done
    sleep 0.1
  done
  echo "systemctl: $unit does not listen" >&2; return 1
}
start() {
  local user folder command as=()
  command=$(of ExecStart)
  user=$(of User)
  if [ -n "$user" ]; then as=(setpriv "--reuid=$user" "--regid=$(of Group)" --clear-groups --no-new-privs); fi
  for folder in $(of RuntimeDirectory | sed s:^:/run/:) $(of StateDirectory | sed s:^:/var/lib/:); do install -d -o "${user:-root}" "$folder"; done
  (
    settings
    folder=$(of WorkingDirectory)
    cd "${folder:-/}"
    eval "exec setsid ${as[*]} $command" </dev/null >>"/var/log/unit-$unit.log" 2>&1
  ) &
  echo $! >"$(pid_file)"
  if [ "$(of Type)" = notify ]; then ready "$(cat "$(pid_file)")"; fi
}
reload() {
  local MAINPID command; MAINPID=$(cat "$(pid_file)")
  settings
  while read -r command; do eval "$command"; done < <(of ExecReload)
  sleep 1
}
if [ "$verb" = daemon-reload ]; then exit; fi
for unit; do
  case $verb in
    enable) start ;;
    disable) stop ;;
    restart) stop; start ;;
    reload) reload ;;
    *) echo "systemctl $verb is not known" >&2; exit 1 ;;
  esac
done
