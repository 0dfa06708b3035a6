# Completes grind's options, then the program and its arguments.
_grind() {
    local current=${COMP_WORDS[COMP_CWORD]} at
    COMPREPLY=()
    # COMP_WORDS splits at "="; the line itself does not.
    local before=${COMP_LINE:0:COMP_POINT}
    local -a typed
    read -ra typed <<<"$before"
    [[ $before == *[[:space:]] ]] && typed+=("")
    for ((at = 1; at < ${#typed[@]} - 1; at++)); do
        [[ ${typed[at]} == -- ]] && { ((at++)); break; }
        [[ ${typed[at]} == -* ]] || break
    done
    if ((at < ${#typed[@]} - 1)); then
        declare -F _command_offset >/dev/null && _command_offset "$at"
        return
    fi
    local word=${typed[at]}
    if [[ $word == -*=* && $word == --@(log|cachegrind-out|callgrind-out)-file=* ]]; then
        COMPREPLY=($(compgen -f -- "${word#*=}"))
    elif [[ $word == -* ]]; then
        local IFS=$'\n' match
        for match in $(compgen -W "$_grind_options" -- "$word"); do
            [[ $word == *=* ]] && match=${match#*=}
            COMPREPLY+=("$match")
        done
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    else
        COMPREPLY=($(compgen -c -- "$current"))
    fi
}
_grind_options='--tool=cachegrind
--tool=callgrind
--help
-h
--help-debug
--help-dyn-options
--version
--quiet
-q
--verbose
-v
--trace-children=yes
--trace-children=no
--trace-children-skip=
--trace-children-skip-by-arg=
--tree=
--pid=
--duration=
--until-dump=yes
--until-dump=no
--live
--dump-every=
--child-silent-after-fork=yes
--child-silent-after-fork=no
--cpu=baseline
--cpu=host
--cpu=haswell
--time-stamp=yes
--time-stamp=no
--log-fd=
--log-file=
--demangle=yes
--demangle=no
--show-below-main=yes
--show-below-main=no
--separate-inlined=yes
--separate-inlined=no
--read-inline-info=yes
--read-inline-info=no
--extra-debuginfo-path=
--cachegrind-out-file=
--instr-at-start=yes
--instr-at-start=no
--cache-sim=yes
--cache-sim=no
--objects=yes
--objects=no
--alloc-fn=
--alloc-depth=
--collect-alloc=yes
--collect-alloc=no
--streams=no
--streams=misses
--prefetch-hints=
--reuse-dist=no
--reuse-dist=bounds
--reuse-dist=exact
--reuse-sample=
--sharing=no
--sharing=lines
--sharing=counts
--sharing=order
--mem-out-file=
--branch-sim=yes
--branch-sim=no
--cycle-estimation=yes
--cycle-estimation=no
--cycle-model=skylake
--cycle-model=icelake
--cycle-model=zen3
--cycle-model=zen4
--contexts=separate
--contexts=merged
--I1=
--D1=
--LL=
--L2=
--inclusion=none
--inclusion=inclusive
--inclusion=exclusive
--prefetcher=none
--prefetcher=nextline
--prefetcher=stride
--prefetcher=stream
--machine=
--tlb-sim=yes
--tlb-sim=no
--DTLB=
--ITLB=
--STLB=
--command-line-only=yes
--command-line-only=no
--code-limit=
--pair-calls-from=
--hot-after=
--beside=auto
--beside=always
--beside=never
--native-windows=auto
--native-windows=always
--native-windows=never
--callgrind-out-file=
--dump-line=yes
--dump-line=no
--dump-instr=yes
--dump-instr=no
--compress-strings=yes
--compress-strings=no
--compress-pos=yes
--compress-pos=no
--combine-dumps=yes
--combine-dumps=no
--dump-every-bb=
--dump-before=
--dump-after=
--zero-before=
--instr-atstart=yes
--instr-atstart=no
--instr-atstart=inherit
--collect-atstart=yes
--collect-atstart=no
--toggle-collect=
--tell-calls=yes
--tell-calls=no
--told-first=
--frames=no
--frames=python
--collect-jumps=yes
--collect-jumps=no
--trace-jump=yes
--trace-jump=no
--collect-bus=yes
--collect-bus=no
--collect-systime=no
--collect-systime=yes
--collect-systime=msec
--collect-systime=usec
--collect-systime=nsec
--separate-threads=no
--separate-threads=yes
--separate-threads=system
--fork-costs=inherit
--fork-costs=zero
--separate-callers=
--context-limit=
--separate-recs=
--skip-plt=yes
--skip-plt=no
--skip-direct-rec=yes
--skip-direct-rec=no
--fn-skip=
--obj-skip=
--pop-on-jump=
--simulate-wb=yes
--simulate-wb=no
--simulate-hwpref=yes
--simulate-hwpref=no
--cacheuse=no
--cacheuse=yes
--cacheuse=self'
complete -F _grind grind
