# bash completion for weir: the program itself says what fits.
complete -o default -o bashdefault -C weir weir
