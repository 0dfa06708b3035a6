//! A panic that is caught, threads, a child process, and a panic that ends the program: the same output and status as natively.
use std::sync::mpsc;
fn main() {
    std::panic::set_hook(Box::new(|i| println!("hook: {}", i.location().unwrap().line())));
    let r = std::panic::catch_unwind(|| { let v: Vec<u32> = Vec::new(); v[std::env::args().count()] });
    println!("{}", r.is_err());
    let (s, r) = mpsc::channel();
    let t: Vec<_> = (0..8u64).map(|i| { let s = s.clone(); std::thread::spawn(move || { for k in 0..100 { s.send(i * k).unwrap() } }) }).collect();
    drop(s);
    println!("{}", r.iter().sum::<u64>());
    t.into_iter().for_each(|t| t.join().unwrap());
    println!("{:?}", std::process::Command::new("sh").arg("-c").arg("exit 3").status());
    panic!("the end");
}
