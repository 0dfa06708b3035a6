complete -c cg_import -l format -d 'What the file is' -r -f -a "auto\t'By what the file looks like'
perf\t'The output of `perf script`'
pprof\t'profile.proto, as pprof, Go and many others write it'
folded\t'Folded stacks, one a line'
offsets\t'Places in objects, one a line: `lib.so+0x1a2b 12`'"
complete -c cg_import -s o -d 'Write to FILE, all or nothing, instead of standard output' -r -F
complete -c cg_import -l events -d 'Take only these events, in this order; for folded stacks and offsets the name of what they count [default: all; samples]' -r
complete -c cg_import -l separate-callers -d 'Keep so many callers of each function in its name, as grind does; `all` keeps whole stacks' -r
complete -c cg_import -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_import -s V -l version -d 'Print version'
