# needs: convert identify
# imagemagick: drawing, filters, formats (OpenMP threads)
c=/usr/bin/convert; [ -x $c ] || c=convert; export OMP_NUM_THREADS=2
$RUN $c -size 320x240 gradient:red-blue -swirl 90 -blur 0x3 -resize 50% -depth 8 rgb:a; sha256sum <a | cut -c1-16; $RUN $c -size 64x64 plasma:fractal -seed 5 x.png 2>/dev/null; $RUN $c -size 100x80 xc:white -fill black -draw 'circle 50,40 60,50' -rotate 30 b.png && $RUN identify -format '%m %wx%h %k\n' b.png; $RUN $c b.png -negate -edge 1 -colorspace Gray pgm:- | sum; $RUN $c nothing.png y.png 2>/dev/null; echo "status $?"
