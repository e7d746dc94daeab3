# fish completion for weir: the program itself says what fits.
function __complete_weir
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    weir
end
complete -f -c weir -a "(__complete_weir)"
