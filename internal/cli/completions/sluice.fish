# Completion of sluice for fish: sluice completion fish | source
function __sluice_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c sluice -n 'test -n "$(__sluice_complete)"' -f -a '(__sluice_complete)'
