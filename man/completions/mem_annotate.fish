complete -c mem_annotate -l show -d 'Show only these events, in this order' -r
complete -c mem_annotate -l sort -d 'Sort by these events; the first also decides what is above the threshold [default: the misses of the first level, reads and writes together]' -r
complete -c mem_annotate -l threshold -d 'Show objects, streams, functions, lines and what threads share with at least this percentage of the total, from 0 to 20' -r
complete -c mem_annotate -l context -d 'With --annotate: print this many lines of source before and after each line that has counts' -r
complete -c mem_annotate -l map-source -d 'Read source files whose names begin with OLD where they begin with NEW instead; may be repeated' -r
complete -c mem_annotate -l diff -d 'Print the difference of two files by object: the second minus the first'
complete -c mem_annotate -l annotate -d 'Print the source lines that allocate, with the counts of what they have allocated'
complete -c mem_annotate -l no-annotate -d 'Do not print source lines [default]'
complete -c mem_annotate -l json -d 'Print the report as JSON, for programs'
complete -c mem_annotate -s h -l help -d 'Print help'
complete -c mem_annotate -s V -l version -d 'Print version'
