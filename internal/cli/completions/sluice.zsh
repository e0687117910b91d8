#compdef sluice
# Completion of sluice for zsh: source <(sluice completion zsh), or as _sluice in a folder of $fpath.
_sluice() {
  local -a found
  local line
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then
    _describe sluice found
  else
    _files
  fi
}
if [[ $funcstack[1] == _sluice ]]; then
  _sluice "$@"
else
  compdef _sluice sluice
fi
