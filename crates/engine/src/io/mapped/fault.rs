//! Turns SIGBUS while a mapping is written to into an answer.
//!
//! A mapped page that cannot be had kills who touches it: the disk does not read
//! it, a file system that copies on write has no space for it, or the file got
//! shorter. [`copy`] announces what it touches. A signal from there has the whole
//! mapping replaced by memory of its own: the copy goes on into bytes that nobody
//! reads, and says so at its end. (The journal of systemd does the same.)
//!
//! Any other SIGBUS goes to the handler that was there before, which for Rust
//! programs is the one of the standard library: it ends the process.
//!
//! Invariants: a thread touches one mapping at a time; the handler does only what
//! is safe in a signal: loads and stores of its own thread, `mmap`, `signal`.
//! Tested by `mapped.rs` and, on file systems that fail, by the tests of the server.

use libc::{c_int, c_void, siginfo_t};
use memmap2::MmapRaw;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::sync::{Once, OnceLock};

/// The mapping that this thread writes to now. Both ends are 0 while it writes to
/// none, and once the handler replaced it.
struct Touched {
    start: AtomicUsize,
    end: AtomicUsize,
}

thread_local! {
    // Neither made at first use nor dropped: a handler may read it at any time.
    static TOUCHED: Touched = const {
        Touched { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    };
}

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Copies `bytes` to `offset` of `map`. False where a page could not be had; the
/// mapping is then separate from its file, for good.
///
/// # Safety
/// The range lies inside the mapping, `map` is a writable mapping of a whole file,
/// and nobody else reads or writes it meanwhile.
#[expect(unsafe_code, reason = "a shared mapping is raw memory")]
pub(super) unsafe fn copy(map: &MmapRaw, bytes: &[u8], offset: usize) -> bool {
    let start = map.as_mut_ptr() as usize;
    TOUCHED.with(|touched| {
        touched.start.store(start, Ordering::Relaxed);
        touched.end.store(start + map.len(), Ordering::Relaxed);
        // The handler runs in this thread: only the compiler can change the order.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the range lies inside the mapping, by the contract of this
        // function, and `bytes`, which safe code borrowed, cannot overlap it.
        unsafe {
            let to = map.as_mut_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        compiler_fence(Ordering::SeqCst);
        touched.start.store(0, Ordering::Relaxed);
        touched.end.swap(0, Ordering::Relaxed) != 0
    })
}

impl Touched {
    /// Replaces the mapping if `address` lies in it.
    #[expect(unsafe_code, reason = "replaces a mapping")]
    fn replace(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        if !(start..end).contains(&address) {
            return false;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the range is a whole mapping that `copy` borrows. It stays mapped,
        // readable and writable, and its owner reads nothing from it.
        let mapped = unsafe {
            let fixed = kind | libc::MAP_FIXED;
            libc::mmap(start as *mut c_void, end - start, access, fixed, -1, 0)
        };
        self.end.store(0, Ordering::Relaxed);
        mapped != libc::MAP_FAILED
    }
}

/// Installs the handler, once for the process.
#[expect(unsafe_code, reason = "installs a signal handler")]
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `sigaction` fills in `before`, for which zeros are valid, too. The
        // handler is in place only when `BEFORE` holds what it passes signals on to.
        unsafe {
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr());
            let before = BEFORE.get_or_init(|| before.assume_init());
            let mut ours = *before;
            ours.sa_sigaction = on_sigbus as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut());
        }
    });
}

#[expect(unsafe_code, reason = "a signal handler")]
extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`; its address is one if the kernel
    // itself sent the signal, which its code tells.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && TOUCHED.with(|touched| touched.replace(address)) {
        return;
    }
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: the default action, which meets the access when it is repeated.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
        return;
    }
    // SAFETY: who installed the handler gave it the type that its flags tell, and all
    // that the kernel passed is passed on.
    unsafe {
        if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
            type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
            std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
        }
    }
}
