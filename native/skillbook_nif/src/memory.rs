//! Free memory that the allocator keeps.

#[rustler::nif(schedule = "DirtyCpu")]
fn memory_give_back() {
    give_back();
}

/// Gives it back to the system. After a load that is three times what the catalog takes, and
/// glibc keeps it for the next one: each of its arenas shrinks only from its end.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc locks each arena for it, so any thread may call it at any time, and it
        // touches free chunks only.
        unsafe {
            malloc_trim(0);
        }
    }
}
