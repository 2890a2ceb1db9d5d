# needs: R
# timeout: 120
# statistics, and workers that are forked
$RUN R --vanilla --slave -e 'set.seed(1); print(mean(rnorm(100))); print(summary(lm(dist~speed,cars))$r.squared)' -e 'library(parallel); print(unlist(mclapply(1:4, function(i) i^2, mc.cores=2)))'
