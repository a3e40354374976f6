//! The allocator of the engine: it counts, refuses what exceeds the limit, and remembers that it refused.

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::allocator::{Allocator, RustAllocator};

/// The memory of the engine. A plan can catch the exception for a refused allocation, but it cannot reset the flag.
#[derive(Debug, Default)]
pub(super) struct MemoryGauge {
    used: Cell<usize>,
    pub(super) limit: Cell<usize>,
    pub(super) exceeded: Cell<bool>,
}

impl MemoryGauge {
    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.used.get().checked_add(bytes).is_some_and(|total| total <= self.limit.get());
        if !fits {
            self.exceeded.set(true);
        }
        fits
    }
}

/// [`RustAllocator`] with a [`MemoryGauge`].
pub(super) struct CountingAllocator(pub(super) Rc<MemoryGauge>);

impl CountingAllocator {
    #[expect(unsafe_code, reason = "reads the size of an allocation of the wrapped allocator")]
    fn count(&self, pointer: *mut u8) -> *mut u8 {
        if !pointer.is_null() {
            // SAFETY: `pointer` is not null and comes from `RustAllocator`, in the same call.
            let size = unsafe { RustAllocator::usable_size(pointer) };
            self.0.used.set(self.0.used.get() + size);
        }
        pointer
    }
}

// SAFETY: every pointer that is returned comes unchanged from `RustAllocator`, which fulfils the contract of the trait,
// or is null. Every pointer that is passed in was returned here, so it belongs to `RustAllocator`. The gauge only
// counts. `calloc` and `alloc` bound the size first, so the sums in `RustAllocator` cannot overflow.
#[expect(unsafe_code, reason = "the trait is unsafe; the proof is above")]
unsafe impl Allocator for CountingAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.has_room(size) {
            return std::ptr::null_mut();
        }
        self.count(RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !count.checked_mul(size).is_some_and(|bytes| self.0.has_room(bytes)) {
            return std::ptr::null_mut();
        }
        self.count(RustAllocator.calloc(count, size))
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        // SAFETY: the caller passes a pointer of this allocator, so it is one of `RustAllocator`; its size is read
        // before it is freed.
        unsafe {
            self.0.used.set(self.0.used.get().saturating_sub(RustAllocator::usable_size(pointer)));
            RustAllocator.dealloc(pointer);
        }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        if pointer.is_null() {
            return self.alloc(new_size);
        }
        if new_size == 0 {
            // SAFETY: as the caller promises, the pointer is of this allocator; `realloc` to nothing frees it.
            unsafe { self.dealloc(pointer) };
            return std::ptr::null_mut();
        }
        // SAFETY: the pointer is of this allocator.
        let old_size = unsafe { RustAllocator::usable_size(pointer) };
        if !self.0.has_room(new_size.saturating_sub(old_size)) {
            return std::ptr::null_mut();
        }
        // SAFETY: the pointer is of this allocator; on failure it stays valid and counted.
        let moved = unsafe { RustAllocator.realloc(pointer, new_size) };
        if !moved.is_null() {
            self.0.used.set(self.0.used.get().saturating_sub(old_size));
        }
        self.count(moved)
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        // SAFETY: the caller passes a pointer of this allocator, which is one of `RustAllocator`.
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
