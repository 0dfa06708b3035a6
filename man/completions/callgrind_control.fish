complete -c callgrind_control -s e -l events -d 'Show counts of events, of all or of these' -r
complete -c callgrind_control -s d -l dump -d 'Write what was counted as a part of the profile and begin anew; HINT stands in the part' -r
complete -c callgrind_control -s i -l instr -d 'Switch counting on or off' -r -f -a "on\t'On'
off\t'Off'"
complete -c callgrind_control -l collection -d 'Switch collecting costs on or off, of all threads; calls are followed all the same (callgrind)' -r -f -a "on\t'On'
off\t'Off'"
complete -c callgrind_control -s s -l stat -d 'Show figures about the run'
complete -c callgrind_control -s b -l back -d 'Show the calls that are going on, thread by thread'
complete -c callgrind_control -s z -l zero -d 'Set all counts to 0'
complete -c callgrind_control -s k -l kill -d 'End the program; its profile is written'
complete -c callgrind_control -l detach -d 'Leave the program to itself: its profile is written, and it goes on without the profiler'
complete -c callgrind_control -l json -d 'Say everything as JSON, for programs'
complete -c callgrind_control -s v -s l -l verbose -l long -d 'Show what is being asked'
complete -c callgrind_control -s h -l help -d 'Print help'
complete -c callgrind_control -s V -l version -d 'Print version'
