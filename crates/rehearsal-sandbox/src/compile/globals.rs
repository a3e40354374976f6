//! The globals of a plan, and what to use instead of those that other runtimes have.

/// The globals that exist in the worker, sorted. A test compares them with `globalThis` of the engine.
pub(crate) const AVAILABLE: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DataView",
    "Date",
    "DisposableStack",
    "Error",
    "EvalError",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "ToolError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakSet",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "console",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "globalThis",
    "isFinite",
    "isNaN",
    "mcp",
    "parseFloat",
    "parseInt",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "undefined",
    "unescape",
];

/// What to use instead of a global that other runtimes have; `None` if no runtime has it.
pub(crate) fn replacement(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" | "Request" | "Response" | "Headers" => {
            "a plan has no network; call a tool that makes the request: `await mcp.server.tool({ … })`"
        }
        "require" | "module" | "exports" | "__dirname" | "__filename" => {
            "a plan has no modules; write the code into the plan, or call a tool"
        }
        "process" | "Deno" | "Bun" | "global" | "window" | "self" | "document" | "navigator" => {
            "a plan has no host; call a tool for files, commands and environment"
        }
        "Buffer" => "use `Uint8Array`, or a tool that works with bytes",
        "structuredClone" => "use `JSON.parse(JSON.stringify(value))`",
        "setImmediate" | "requestAnimationFrame" => "use `setTimeout(callback, 0)`",
        "clearImmediate" | "cancelAnimationFrame" => "use `clearTimeout`",
        "performance" => "use `Date.now()`, which shows the plan's virtual time",
        "crypto" => "use `Math.random()`, which is seeded",
        "TextEncoder" | "TextDecoder" => "decode the value with a tool",
        "URL" | "URLSearchParams" => "use `encodeURIComponent` and template literals",
        "Intl" => "use methods of `Date`, `Number` and `String`",
        "alert" | "prompt" | "confirm" => "return the value, or use `console.log`",
        "localStorage" | "sessionStorage" | "indexedDB" => "a plan keeps nothing; call a tool that stores the value",
        "Worker" | "SharedArrayBuffer" | "Atomics" => "a plan is one thread; use `Promise.all` for concurrent calls",
        "WeakRef" | "FinalizationRegistry" => "a plan does not observe the garbage collector",
        "AbortController" | "AbortSignal" => "use `Promise.race` with `setTimeout`",
        "DOMException" => "use `Error`",
        "WebAssembly" => "write the code in JavaScript",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_globals_are_sorted_and_need_no_replacement() {
        assert!(AVAILABLE.is_sorted());
        assert!(AVAILABLE.iter().all(|name| replacement(name).is_none()));
    }
}
