complete -c cg_diff -l mod-filename -d 'Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_diff -l mod-funcname -d 'Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_diff -l match-paths -d 'Rename source files so that those of two builds in different folders meet'
complete -c cg_diff -l json -d 'Print the difference as JSON, for programs'
complete -c cg_diff -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_diff -s V -l version -d 'Print version'
