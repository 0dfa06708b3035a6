complete -c callgrind_annotate -l fold-by -d 'The same, commands being the same after s/OLD/NEW/; may be repeated' -r
complete -c callgrind_annotate -l show -d 'Show only these events, in this order' -r
complete -c callgrind_annotate -l sort -d 'Sort by these events; a threshold may follow each, as in Ir:90,Dr' -r
complete -c callgrind_annotate -l threshold -d 'Show functions until this percentage of the first sort event is covered, from 0 to 100' -r
complete -c callgrind_annotate -l show-percs -d 'Show percentages beside counts [default: yes]' -r -f -a "yes\t'On'
no\t'Off'"
complete -c callgrind_annotate -l auto -d 'Print the source files of the functions shown, with their counts [default: yes]' -r -f -a "yes\t'On'
no\t'Off'"
complete -c callgrind_annotate -l context -d 'Print this many lines of source before and after each line that has counts' -r
complete -c callgrind_annotate -l inclusive -d 'Show functions with the cost of what they call [default: no]' -r -f -a "yes\t'On'
no\t'Off'"
complete -c callgrind_annotate -l tree -d 'Show with each function its callers, the functions it calls, or both' -r -f -a "none\t'The function alone'
caller\t'Its callers'
calling\t'What it calls'
both\t'Both'"
complete -c callgrind_annotate -l cycles -d 'Find cycles of functions that call each other and show their cost once; with no, numbers are those of the reference, and costs of recursive calls add up beyond 100% [default: yes]' -r -f -a "yes\t'On'
no\t'Off'"
complete -c callgrind_annotate -s I -l include -d 'Look for source files here too; may be repeated' -r -F
complete -c callgrind_annotate -l map-source -d 'Read source files whose names begin with OLD where they begin with NEW instead; may be repeated' -r
complete -c callgrind_annotate -l color -d 'When to colour the report' -r -f -a "auto\t'If standard output is a terminal and `NO_COLOR` is unset or empty'
always\t'Always'
never\t'Never'"
complete -c callgrind_annotate -l by-process -d 'Print what each process of a tree costs (`grind --tree=FILE`), itself and with all that it started, and functions by program; what is below 100 less --threshold percent is left out'
complete -c callgrind_annotate -l fold -d 'With --by-process: make processes one that run the same command'
complete -c callgrind_annotate -l no-show-percs -d 'Show counts only'
complete -c callgrind_annotate -l annotate -d 'Same as --auto=yes'
complete -c callgrind_annotate -l no-annotate -d 'Same as --auto=no'
complete -c callgrind_annotate -l json -d 'Print the report as JSON, for programs'
complete -c callgrind_annotate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c callgrind_annotate -s V -l version -d 'Print version'
