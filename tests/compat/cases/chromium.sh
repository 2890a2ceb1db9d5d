# needs: chromium
# timeout: 400
# a browser with its zygotes, workers and shared memory
echo '<body><div id=a>x</div><script>document.getElementById("a").innerText = "js " + 6 * 7</script></body>' >t.html
$RUN chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --dump-dom "file://$PWD/t.html" 2>/dev/null
