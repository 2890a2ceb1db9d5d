# needs: ffmpeg
# timeout: 120
# ffmpeg: generated video and sound through encoders, decoders and filters (hand-written vector code, threads)
f="$RUN ffmpeg -v error -nostdin -bitexact"; $f -f lavfi -i testsrc=s=192x108:r=10:d=2 -f lavfi -i sine=f=440:d=2 -threads 2 -c:v mpeg4 -q:v 4 -c:a pcm_s16le -flags +bitexact -fflags +bitexact -y a.avi; sum <a.avi
$f -i a.avi -vf scale=96:54,hflip -f rawvideo -pix_fmt yuv420p - | sum; $f -i a.avi -vn -af atempo=1.5,lowpass=f=800 -f s16le - | wc -c; $f -i a.avi -c:v libx264 -threads 2 -preset fast -f h264 - 2>/dev/null | wc -c | sed 's/.../&/' | cut -c1-1; $RUN ffprobe -v error -show_entries stream=codec_name,nb_frames -of csv a.avi; $f -i nothing x 2>/dev/null; echo "status $?"
