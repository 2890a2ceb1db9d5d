# needs: rustc
# rustc: compiles, and the program runs: threads, panics, unwinding
cat >a.rs <<'S'
use std::{collections::HashMap, panic, sync::{mpsc, Arc, Mutex}, thread};
fn main() { let t = Arc::new(Mutex::new(0u64)); let h: Vec<_> = (0..4).map(|i| { let t = t.clone(); thread::spawn(move || for k in 0..1000 { *t.lock().unwrap() += i * k; }) }).collect(); for x in h { x.join().unwrap(); } println!("{}", t.lock().unwrap());
 panic::set_hook(Box::new(|_| {})); println!("{}", panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[3] }).is_err()); let (s, r) = mpsc::channel(); thread::spawn(move || for i in 0..5 { s.send(i * i).unwrap(); }); println!("{:?}", r.iter().collect::<Vec<_>>()); let mut m = HashMap::new(); for w in "a b a c b a".split(' ') { *m.entry(w).or_insert(0) += 1; } let mut v: Vec<_> = m.into_iter().collect(); v.sort(); println!("{:?}", v); std::process::exit(3); }
S
$RUN rustc -O -o a a.rs && $RUN ./a; echo "status $?"
