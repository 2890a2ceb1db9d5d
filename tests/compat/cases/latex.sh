# needs: pdflatex
# timeout: 120
printf '\\documentclass{article}\\begin{document}Hello $x^2$\\end{document}' >t.tex
$RUN pdflatex -interaction=batchmode t.tex >/dev/null; echo "status $?"; ls t.*
