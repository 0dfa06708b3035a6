_cg_annotate() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="cg_annotate"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        cg_annotate)
            opts="-h -V --diff --by-context --by-process --fold --fold-by --mod-filename --mod-funcname --show --sort --threshold --show-percs --no-show-percs --annotate --no-annotate --auto --context --json --github-summary --fail-above --fail-above-function --growth --match-paths --map-source --color --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --fold-by)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mod-filename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mod-funcname)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sort)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show-percs)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --auto)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --context)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-above)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fail-above-function)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --map-source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _cg_annotate -o nosort -o bashdefault -o default cg_annotate
else
    complete -F _cg_annotate -o bashdefault -o default cg_annotate
fi
