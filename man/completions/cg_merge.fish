complete -c cg_merge -s o -d 'Write to FILE, all or nothing, instead of standard output' -r -F
complete -c cg_merge -s h -l help -d 'Print help'
complete -c cg_merge -s V -l version -d 'Print version'
