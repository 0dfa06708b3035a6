//! See `cg_link`.

fn main() {
    cg_link::statically();
}
