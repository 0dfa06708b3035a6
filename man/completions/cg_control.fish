complete -c cg_control -s e -l events -d 'Show counts of events, of all or of these' -r
complete -c cg_control -s d -l dump -d 'Write what was counted as a part of the profile and begin anew; HINT stands in the part' -r
complete -c cg_control -s i -l instr -d 'Switch counting on or off' -r -f -a "on\t'On'
off\t'Off'"
complete -c cg_control -l collection -d 'Switch collecting costs on or off, of all threads; calls are followed all the same (callgrind)' -r -f -a "on\t'On'
off\t'Off'"
complete -c cg_control -l count -d 'With top: say it so many times, as text' -r
complete -c cg_control -l interval -d 'With top: milliseconds from one time to the next [default: 500]' -r
complete -c cg_control -l sort -d 'With top: sort functions by this event [default: Ir]' -r
complete -c cg_control -l filter -d 'With top: show functions and files alone whose names contain this' -r
complete -c cg_control -l rows -d 'With top, as text: show so many functions [default: 20]' -r
complete -c cg_control -s s -l stat -d 'Show figures about the run'
complete -c cg_control -s b -l back -d 'Show the calls that are going on, thread by thread'
complete -c cg_control -s z -l zero -d 'Set all counts to 0'
complete -c cg_control -s k -l kill -d 'End the program; its profile is written'
complete -c cg_control -l detach -d 'Leave the program to itself: its profile is written, and it goes on without the profiler'
complete -c cg_control -l json -d 'Say everything as JSON, for programs'
complete -c cg_control -s v -s l -l verbose -l long -d 'Show what is being asked'
complete -c cg_control -l once -d 'With top: say it once, as text'
complete -c cg_control -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_control -s V -l version -d 'Print version'
