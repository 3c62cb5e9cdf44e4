#!/bin/bash
# Drives one redis-cli that reads commands from a pipe (the line protocol:
# clients/README.md). Arguments before the four of the protocol are passed on:
# -3 for RESP3. It has one of its own for pipelining, --pipe, which counts replies
# and errors, but does not show them.
set -u
args=("${@:1:$#-4}")
shift $(($# - 4))
args+=(-h "$1" -p "$2")
[ -z "$3" ] || args+=(--user "$3")
[ -z "$4" ] || args+=(--pass "$4" --no-auth-warning)

coproc CLI { exec redis-cli "${args[@]}" 2>&1; }
end=0

# ask has the command answered, one element or one error to a line, and then an
# ECHO, which ends the reply. Without a connection or a login, each of both gives
# a line that says so. An error is followed by an empty line.
ask() {
	printf '%s\nECHO end-%d\n' "$1" $((++end)) >&"${CLI[1]}"
	reply=
	while IFS= read -r line <&"${CLI[0]}"; do
		[ "$line" != "end-$end" ] || return 0
		[[ ! ($line =~ ^(Could not connect|Error: |NOAUTH ) && $reply) ]] || return 0
		[ -n "$line" ] || continue
		reply+="${reply:+ }$line"
	done
	reply="redis-cli has ended: $reply"
}

while read -r verb rest; do
	case $verb in
	call)
		ask "$rest"
		if [[ $reply =~ ^[-0-9\ ]+$ ]]; then echo "ok $reply"; else echo "err $reply"; fi ;;
	pipe)
		n=${rest%% *}
		yes "${rest#* }" | head -n "$n" | redis-cli "${args[@]}" --pipe >/dev/null && echo "ok replies $n" || echo "err --pipe" ;;
	version) redis-cli --version | sed 's/redis-cli /ok /' ;;
	*) break ;;
	esac
done
