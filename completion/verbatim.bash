# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of verbatim's command line for bash. What the commands and their options are is asked of the program itself (--help), so
# that this file has no list that could be wrong. Works without the package bash-completion; with it, the command line behind
# `verbatim run` is completed as that program's own.

# The commands: the words at the beginning of the lines below "Commands:".
_verbatim_commands()
{
    "$1" --help 2>/dev/null | sed -n '/^Commands:/,$ s/^  \([a-z][a-z]*\).*/\1/p'
}

# The options of a command, long and short, as its --help writes them; those with a value end with "=".
_verbatim_options()
{
    "$1" "$2" --help 2>/dev/null | sed -n 's/^ *\(-.*\)/\1/p' | sed 's/  .*//' | tr -d '[]' | tr -s ', ' '[\n*]' |
        sed -n 's/^\(--[a-z][a-z-]*=\{0,1\}\).*/\1/p; s/^\(-[A-Za-z?]\)$/\1/p' | sort -u
}

# The values of an option.
_verbatim_values()
{
    case $1 in
    --view) echo "preload namespace none" ;;
    esac
}

# Where the program of `verbatim run` stands among the words; bash takes "=" as a word of its own.
_verbatim_program_at()
{
    local i
    for ((i = 2; i < ${#COMP_WORDS[@]}; i++)); do
        case ${COMP_WORDS[i]} in
        --) echo $((i + 1)) && return ;;
        =) i=$((i + 1)) ;;
        -*) ;;
        *) echo "$i" && return ;;
        esac
    done
    echo "$i"
}

_verbatim_files()
{
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
    compopt -o filenames 2>/dev/null
}

_verbatim()
{
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} at option=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_verbatim_commands "$program") --help --version" -- "$word")
        return
    fi
    if [ "$command" = run ]; then
        at=$(_verbatim_program_at)
        if ((COMP_CWORD > at)) && declare -F _command_offset >/dev/null; then
            _command_offset "$at"
            return
        elif ((COMP_CWORD > at)); then
            _verbatim_files "$word"
            return
        elif ((COMP_CWORD == at)) && [[ $word != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$word")
            return
        fi
    fi
    if [ "$word" = = ]; then
        option=${COMP_WORDS[COMP_CWORD - 1]} word=
    elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [ -n "$option" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_verbatim_values "$option")" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_verbatim_options "$program" "$command")" -- "$word")
        [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
    else
        _verbatim_files "$word"
    fi
}

complete -F _verbatim verbatim
