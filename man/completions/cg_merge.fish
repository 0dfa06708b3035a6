complete -c cg_merge -s o -d 'Write to FILE, all or nothing, instead of standard output' -r -F
complete -c cg_merge -l rank -d 'With --by-rank: make the rank of a profile from its name by s/OLD/NEW/' -r
complete -c cg_merge -l event -d 'With --by-rank: the event to look at [default: the first]' -r
complete -c cg_merge -l threshold -d 'With --by-rank: show functions with at least this percentage of the total [default: 0.1]' -r
complete -c cg_merge -l by-rank -d 'Instead of the sum, print how evenly the ranks of a parallel program share each function'
complete -c cg_merge -l json -d 'With --by-rank: print the table as JSON, for programs'
complete -c cg_merge -s h -l help -d 'Print help'
complete -c cg_merge -s V -l version -d 'Print version'
