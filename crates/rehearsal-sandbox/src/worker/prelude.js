// Evaluated once for each run, before the plan. `host` has the functions of natives.rs; the plan never reaches it.
// The plan may replace any global and any prototype member. Therefore this code takes every intrinsic that it uses
// before the plan runs, keeps its own data in objects without a prototype, and passes only primitives to `host`.
(function (host) {
  "use strict";
  const { apply, construct, ownKeys } = Reflect;
  const { create, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isInteger, isSafeInteger } = Number;
  const RealError = Error, RealTypeError = TypeError, RealPromise = Promise, RealDate = Date, RealProxy = Proxy;
  const RealMap = Map, RealSet = Set, RealString = String, RealArrayBuffer = ArrayBuffer, RealRegExp = RegExp;
  const ObjectPrototype = Object.prototype, ArrayPrototype = Array.prototype;
  const TypedArray = getPrototypeOf(Uint8Array);
  const bind = Function.prototype.bind, hasInstance = Function.prototype[Symbol.hasInstance];
  const then = Promise.prototype.then, getTime = Date.prototype.getTime, toISOString = Date.prototype.toISOString;
  const toWellFormed = String.prototype.toWellFormed, slice = String.prototype.slice, matches = RegExp.prototype.test;
  const weakGet = WeakMap.prototype.get, weakSet = WeakMap.prototype.set;
  const mapEntries = Map.prototype.forEach, setValues = Set.prototype.forEach;
  const errorText = Error.prototype.toString, expressionText = RegExp.prototype.toString;
  const own = (object, key) => getOwnPropertyDescriptor(object, key);
  const errorLimit = own(RealError, "stackTraceLimit"), errorPrepare = own(RealError, "prepareStackTrace");
  const isInstance = (value, constructor) => apply(hasInstance, constructor, [value]);
  const wellFormed = (text) => apply(toWellFormed, text, []);
  const hidden = (object, key, value) =>
    defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });

  // Stacks. The accessors of `Error` work on slots of the engine, so a frozen or replaced `Error` does not matter.
  let siteFile, siteLine, siteColumn, collected = "";
  function collect(_, sites) {
    let text = "", found = 0;
    for (let index = 0; index < sites.length && found < 4; index++) {
      const site = sites[index];
      if (apply(siteFile, site, []) !== "plan.ts") continue;
      const line = apply(siteLine, site, []);
      if (typeof line !== "number" || line < 1) continue;
      text += (found++ ? "," : "") + line + ":" + apply(siteColumn, site, []);
    }
    collected = text;
  }
  function withPrepare(prepare, limit) {
    const oldLimit = apply(errorLimit.get, RealError, []), oldPrepare = apply(errorPrepare.get, RealError, []);
    apply(errorLimit.set, RealError, [limit]);
    apply(errorPrepare.set, RealError, [prepare]);
    new RealError();
    apply(errorLimit.set, RealError, [oldLimit]);
    apply(errorPrepare.set, RealError, [oldPrepare]);
  }
  withPrepare((_, sites) => {
    const prototype = getPrototypeOf(sites[0]);
    siteFile = prototype.getFileName;
    siteLine = prototype.getLineNumber;
    siteColumn = prototype.getColumnNumber;
  }, 1);
  function stack() {
    collected = "";
    withPrepare(collect, 20);
    return collected;
  }

  // Values to JSON. The replacer sees each value once; what it checks is what is sent.
  const identifier = /^[A-Za-z_$][\w$]*$/;
  identifier.exec = RegExp.prototype.exec;
  defineProperty(identifier, "flags", { value: "" });
  function className(value) {
    const prototype = getPrototypeOf(value);
    const found = prototype && own(prototype, "constructor");
    const name = found && typeof found.value === "function" && own(found.value, "name");
    return name && typeof name.value === "string" && name.value !== "" ? wellFormed(name.value) : "a class";
  }
  // Recorders: results without a known shape. A recorder is a proxy that accepts every use and notes it; what was noted
  // becomes a value for later runs. A node has no prototype, so that nothing of the plan changes how it is read.
  const recorders = { __proto__: null };
  const recorderNodes = new WeakMap();
  const recorderNode = (value) =>
    typeof value === "function" ? apply(weakGet, recorderNodes, [value]) : undefined;
  const methodsOf = (prototype) => {
    const methods = { __proto__: null };
    const names = ownKeys(prototype);
    for (let index = 0; index < names.length; index++) {
      const name = names[index], found = typeof name === "string" && own(prototype, name);
      if (found && typeof found.value === "function" && name !== "constructor") methods[name] = found.value;
    }
    return methods;
  };
  const textMethods = methodsOf(String.prototype), numberMethods = methodsOf(Number.prototype);
  const arrayMethods = methodsOf(ArrayPrototype), iterate = ArrayPrototype[Symbol.iterator];
  const toPrimitive = Symbol.toPrimitive, iterator = Symbol.iterator;
  const index = /^(0|[1-9][0-9]*)$/;
  index.exec = RegExp.prototype.exec;
  defineProperty(index, "flags", { value: "" });
  function newNode(name, parent) {
    return { __proto__: null, name, parent, kind: "", members: { __proto__: null }, element: undefined, proxy: undefined };
  }
  function member(node, name) {
    if (node.kind === "") node.kind = "object";
    node.members[name] ??= newNode(name, node);
    return recorder(node.members[name]);
  }
  function element(node) {
    node.kind = "array";
    node.element ??= newNode(node.name);
    return recorder(node.element);
  }
  const plain = (node) => (node.kind === "number" ? 1 : node.name);
  // A member that is called is a method of its owner: the owner is text, an array or a number.
  function called(node, values) {
    const owner = node.parent, name = node.name;
    if (owner === undefined) return recorder(newNode(name));
    delete owner.members[name];
    if (owner.kind === "object" && ownKeys(owner.members).length === 0) owner.kind = "";
    if (arrayMethods[name] !== undefined && (owner.kind === "array" || textMethods[name] === undefined)) {
      return apply(arrayMethods[name], [element(owner)], values);
    }
    if (textMethods[name] !== undefined) {
      if (owner.kind !== "object") owner.kind = "string";
      return apply(textMethods[name], owner.name, values);
    }
    if (numberMethods[name] !== undefined) {
      if (owner.kind !== "object") owner.kind = "number";
      return apply(numberMethods[name], 1, values);
    }
    return recorder(newNode(name));
  }
  function recorder(node) {
    if (node.proxy !== undefined) return node.proxy;
    const get = (_, key) => {
      if (key === toPrimitive) {
        return (hint) => {
          if (node.kind === "") node.kind = hint === "number" ? "number" : "string";
          return plain(node);
        };
      }
      if (key === iterator) return apply(bind, iterate, [[element(node)]]);
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
      if (key === "length" && node.kind !== "object") {
        if (node.kind !== "string") element(node);
        return 1;
      }
      return apply(matches, index, [key]) ? element(node) : member(node, wellFormed(key));
    };
    node.proxy = new RealProxy(() => undefined, {
      __proto__: null,
      get,
      has: (_, key) => typeof key === "string" && member(node, wellFormed(key)) !== undefined,
      apply: (_, __, values) => called(node, values),
      set: () => true,
      deleteProperty: () => true,
      getPrototypeOf: () => ObjectPrototype,
      ownKeys: () => {
        if (node.kind === "") node.kind = "object";
        return [];
      },
    });
    apply(weakSet, recorderNodes, [node.proxy, node]);
    return node.proxy;
  }
  // The value that has the shape of a node. Its objects have no prototype, and `stringify` reads nothing of the plan.
  function shapeText(node, depth) {
    if (depth > 20 || node.kind === "") return depth === 0 ? "null" : stringify(node.name);
    if (node.kind === "number") return "1";
    if (node.kind === "string") return stringify(node.name);
    if (node.kind === "array") return "[" + (node.element === undefined ? "" : shapeText(node.element, depth + 1)) + "]";
    const names = ownKeys(node.members);
    let text = "";
    for (let at = 0; at < names.length; at++) {
      text += (at ? "," : "") + stringify(names[at]) + ":" + shapeText(node.members[names[at]], depth + 1);
    }
    return "{" + text + "}";
  }

  function encode(root) {
    const holders = { __proto__: null }, keys = { __proto__: null };
    let depth = 0, notes = 0, started = false;
    const path = (last) => {
      let text = "$";
      for (let level = 1; level <= depth + 1; level++) {
        const key = level > depth ? last : keys[level];
        const holder = holders[level - 1];
        if (level === 1) continue;
        if (isArray(holder)) text += "[" + key + "]";
        else text += apply(matches, identifier, [key]) ? "." + wellFormed(key) : "[" + stringify(wellFormed(key)) + "]";
      }
      return text;
    };
    const note = (key, message) => {
      if (notes++ < 100) host.lossy(path(key), message);
    };
    function replacer(key, value) {
      const isRoot = !started;
      if (!started) {
        started = true;
        holders[0] = this;
      }
      while (depth > 0 && holders[depth] !== this) depth--;
      const outcome = isArray(this) ? "becomes null" : depth === 0 ? "becomes null" : "member dropped";
      const recorded = recorderNode(value);
      if (recorded !== undefined) {
        host.unknown(path(key));
        if (recorded.kind === "" && !isRoot) recorded.kind = "string";
        if (recorded.kind === "") return null;
        return recorded.kind === "array" ? [] : recorded.kind === "object" ? {} : plain(recorded);
      }
      switch (typeof value) {
        case "string": {
          const text = wellFormed(value);
          if (text !== value) note(key, "a lone surrogate becomes U+FFFD");
          return text;
        }
        case "number":
          if (value !== value || value === Infinity || value === -Infinity) note(key, value + " becomes null");
          else if (isInteger(value) && !isSafeInteger(value)) note(key, "an integer beyond 2^53 may have lost digits");
          return value;
        case "bigint":
          throw new RealTypeError("BigInt at " + path(key) + " cannot be sent as JSON");
        case "undefined":
        case "function":
        case "symbol":
          note(key, typeof value + ": " + outcome);
          return value;
        case "object":
          break;
        default:
          return value;
      }
      if (value === null) {
        const before = own(this, key);
        if (before !== undefined && typeof before.value === "object" && before.value !== null) {
          if (isInstance(before.value, RealDate)) note(key, "an invalid Date becomes null");
        }
        return value;
      }
      for (let level = 1; level <= depth; level++) {
        if (holders[level] === value) throw new RealTypeError("a cycle at " + path(key) + " cannot be sent as JSON");
      }
      if (isInstance(value, RealPromise)) note(key, "a Promise: await is missing");
      else if (isInstance(value, RealMap)) note(key, "Map becomes {}");
      else if (isInstance(value, RealSet)) note(key, "Set becomes {}");
      else if (isInstance(value, TypedArray)) note(key, className(value) + " becomes an object with numbers as keys");
      else if (isInstance(value, RealArrayBuffer)) note(key, "ArrayBuffer becomes {}");
      else if (isInstance(value, RealRegExp)) note(key, "RegExp becomes {}");
      else if (isInstance(value, RealError)) note(key, className(value) + " loses its message and stack");
      else if (!isArray(value)) {
        const prototype = getPrototypeOf(value);
        const boxed = typeof value.valueOf === "function" && isInstance(value, RealString);
        if (prototype !== null && prototype !== ObjectPrototype && prototype !== ArrayPrototype && !boxed) {
          note(key, "an instance of " + className(value) + " becomes a plain object");
        }
      }
      depth++;
      holders[depth] = value;
      keys[depth] = key;
      return value;
    }
    const text = stringify(root, replacer);
    return text === undefined ? "null" : text;
  }

  // Tools.
  const pending = { __proto__: null };
  const toolErrors = new WeakMap();
  class ToolError extends RealError {
    constructor(message) {
      super(message);
    }
  }
  defineProperty(ToolError.prototype, "name", { value: "ToolError", writable: true, configurable: true });
  function invoke(server, tool, site, value) {
    if (arguments.length > 4) {
      host.lossy("$", "only the first of " + (arguments.length - 3) + " arguments is sent");
    }
    let text = "{}";
    if (value !== undefined) {
      try {
        text = encode(value);
      } catch (error) {
        host.forget();
        throw error;
      }
    }
    const id = host.call(server, tool, text, site, stack());
    const promise = new RealPromise((resolve, reject) => {
      pending[id] = { __proto__: null, resolve, reject, server, tool };
    });
    // `await`, `then` and the functions of `Promise` read this property: a call whose promise nothing reads is not awaited.
    defineProperty(promise, "constructor", {
      __proto__: null,
      configurable: true,
      get: () => {
        host.used(id);
        return RealPromise;
      },
    });
    return promise;
  }
  const reserved = { __proto__: null };
  const reservedNames = ownKeys(ObjectPrototype);
  for (let index = 0; index < reservedNames.length; index++) reserved[reservedNames[index]] = true;
  const readOnly = (name) => () => {
    throw new RealTypeError(name + " is read-only");
  };
  function proxy(name, server, member) {
    // Symbols, `then` and `toJSON` are looked up by the engine; names of Object.prototype only count if they are known.
    const visible = (key) => {
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return false;
      return reserved[key] !== true || host.knows(server, key);
    };
    return new RealProxy(create(null), {
      __proto__: null,
      get: (_, key) => (visible(key) ? member(wellFormed(key)) : undefined),
      has: (_, key) => typeof key === "string" && host.knows(server, wellFormed(key)),
      ownKeys: () => parse(host.names(server)),
      getOwnPropertyDescriptor: (_, key) => {
        if (typeof key !== "string" || !host.knows(server, wellFormed(key))) return undefined;
        return { __proto__: null, value: member(wellFormed(key)), writable: true, enumerable: true, configurable: true };
      },
      set: readOnly(name),
      deleteProperty: readOnly(name),
      defineProperty: readOnly(name),
      setPrototypeOf: readOnly(name),
      preventExtensions: readOnly(name),
    });
  }
  const servers = { __proto__: null };
  const mcp = proxy("mcp", "", (server) => {
    servers[server] ??= proxy("mcp." + server, server, (tool) => {
      const call = apply(bind, invoke, [undefined, server, tool, stack()]);
      defineProperty(call, "name", { __proto__: null, value: tool, configurable: true });
      return call;
    });
    return servers[server];
  });

  // Console.
  function inspect(value, depth, seen) {
    switch (typeof value) {
      case "string":
        return depth === 0 ? value : stringify(value);
      case "function":
        return "[Function]";
      case "bigint":
        return value + "n";
      case "object":
        break;
      default:
        return apply(RealString, undefined, [value]);
    }
    if (value === null) return "null";
    if (value === mcp) return "[mcp]";
    if (isInstance(value, RealError)) return apply(errorText, value, []);
    if (isInstance(value, RealPromise)) return "Promise {}";
    if (isInstance(value, RealDate)) {
      const time = apply(getTime, value, []);
      return time === time ? apply(toISOString, value, []) : "Invalid Date";
    }
    if (isInstance(value, RealRegExp)) return apply(expressionText, value, []);
    if (depth > 4) return "…";
    for (let level = 0; level < depth; level++) if (seen[level] === value) return "[Circular]";
    seen[depth] = value;
    let text = "", count = 0;
    const add = (part) => {
      if (count++ < 100) text += (count > 1 ? ", " : "") + part;
      else if (count === 102) text += ", …";
    };
    if (isInstance(value, RealMap)) {
      apply(mapEntries, value, [(item, key) => add(inspect(key, depth + 1, seen) + " => " + inspect(item, depth + 1, seen))]);
      return "Map {" + text + "}";
    }
    if (isInstance(value, RealSet)) {
      apply(setValues, value, [(item) => add(inspect(item, depth + 1, seen))]);
      return "Set {" + text + "}";
    }
    if (isArray(value)) {
      for (let index = 0; index < value.length && count < 102; index++) add(inspect(value[index], depth + 1, seen));
      return "[" + text + "]";
    }
    const keys = ownKeys(value);
    for (let index = 0; index < keys.length && count < 102; index++) {
      const key = keys[index], property = own(value, key);
      if (typeof key === "symbol" || property === undefined || !property.enumerable) continue;
      const name = apply(matches, identifier, [key]) ? key : stringify(key);
      add(name + ": " + ("value" in property ? inspect(property.value, depth + 1, seen) : "[Getter]"));
    }
    return "{" + text + "}";
  }
  const print = (level) =>
    apply(bind, function () {
      let text = "";
      for (let index = 0; index < arguments.length; index++) {
        text += (index ? " " : "") + inspect(arguments[index], 0, { __proto__: null });
      }
      host.log(level, wellFormed(text));
    }, [undefined]);
  const console = {};
  hidden(console, "log", print("log"));
  hidden(console, "info", print("info"));
  hidden(console, "warn", print("warn"));
  hidden(console, "error", print("error"));
  hidden(console, "debug", print("debug"));
  hidden(console, "trace", print("debug"));
  hidden(console, "dir", print("log"));
  hidden(console, "table", print("log"));
  hidden(console, "group", print("log"));
  const nothing = apply(bind, function () {}, [undefined]);
  const silent = ["groupEnd", "time", "timeEnd", "timeLog", "count", "countReset", "clear"];
  for (let index = 0; index < silent.length; index++) hidden(console, silent[index], nothing);
  const failedAssertion = print("error");
  hidden(console, "assert", (condition, ...values) => {
    if (!condition) failedAssertion("assertion failed", ...values);
  });

  // Time and chance.
  const callbacks = { __proto__: null };
  const timer = (repeats) => function (callback, delay) {
    if (typeof callback !== "function") throw new RealTypeError("the callback of a timer must be a function");
    const values = { __proto__: null, length: arguments.length > 2 ? arguments.length - 2 : 0 };
    for (let index = 2; index < arguments.length; index++) values[index - 2] = arguments[index];
    const id = host.addTimer(+delay || 0, repeats);
    callbacks[id] = { __proto__: null, callback, values, repeats };
    return id;
  };
  const clear = (id) => {
    if (typeof id !== "number" || callbacks[id] === undefined) return;
    delete callbacks[id];
    host.clearTimer(id);
  };
  function PlanDate() {
    if (new.target === undefined) return RealString(new RealDate(host.now()));
    const values = arguments.length === 0 ? [host.now()] : arguments;
    return construct(RealDate, values, new.target === PlanDate ? RealDate : new.target);
  }
  defineProperty(PlanDate, "name", { __proto__: null, value: "Date", configurable: true });
  defineProperty(PlanDate, "length", { __proto__: null, value: 7, configurable: true });
  defineProperty(PlanDate, "prototype", { __proto__: null, value: RealDate.prototype, writable: false });
  hidden(PlanDate, "now", apply(bind, () => host.now(), [undefined]));
  hidden(PlanDate, "parse", RealDate.parse);
  hidden(PlanDate, "UTC", RealDate.UTC);
  hidden(RealDate.prototype, "constructor", PlanDate);
  hidden(Math, "random", apply(bind, () => host.random(), [undefined]));

  // `DOMException` exists in the first context of an engine only; the others are not deterministic, or block.
  const removed = ["DOMException", "performance", "navigator", "gc", "WeakRef", "FinalizationRegistry",
    "SharedArrayBuffer", "Atomics"];
  for (let index = 0; index < removed.length; index++) delete globalThis[removed[index]];
  defineProperty(globalThis, "mcp", { __proto__: null, value: mcp });
  hidden(globalThis, "ToolError", ToolError);
  hidden(globalThis, "console", console);
  hidden(globalThis, "Date", PlanDate);
  hidden(globalThis, "setTimeout", apply(bind, timer(false), [undefined]));
  hidden(globalThis, "setInterval", apply(bind, timer(true), [undefined]));
  hidden(globalThis, "clearTimeout", apply(bind, clear, [undefined]));
  hidden(globalThis, "clearInterval", apply(bind, clear, [undefined]));

  // Probes: the compiler adds calls of these functions where the plan decides what it does next. Each returns its value,
  // unless the run forces another decision.
  // A text that is different for different data. It reads no accessor and is not longer than about 4,000 characters.
  function digest(value, depth, rest) {
    if (typeof value === "string") return stringify(value.length > 2000 ? value.length + apply(slice, value, [0, 2000]) : value);
    if (typeof value === "bigint") return value + "n";
    if (recorderNode(value) !== undefined) return "recorder";
    if (typeof value !== "object") return typeof value === "symbol" ? "symbol" : typeof value === "function" ? "function" : value + "";
    if (value === null) return "null";
    if (depth > 4 || rest.left <= 0 || value === mcp || isInstance(value, RealPromise)) return "…";
    if (isInstance(value, RealDate)) return "Date" + apply(getTime, value, []);
    if (isInstance(value, RealRegExp)) return apply(expressionText, value, []);
    let text = "";
    const add = (part) => {
      rest.left -= part.length + 1;
      text += part + ",";
    };
    if (isInstance(value, RealMap)) {
      apply(mapEntries, value, [(item, key) => rest.left > 0 && add(digest(key, depth + 1, rest) + "=>" + digest(item, depth + 1, rest))]);
      return "Map(" + text + ")";
    }
    if (isInstance(value, RealSet)) {
      apply(setValues, value, [(item) => rest.left > 0 && add(digest(item, depth + 1, rest))]);
      return "Set(" + text + ")";
    }
    if (isArray(value)) {
      for (let at = 0; at < value.length && rest.left > 0; at++) {
        const property = own(value, at);
        add(property !== undefined && "value" in property ? digest(property.value, depth + 1, rest) : "");
      }
      return value.length + "[" + text + "]";
    }
    const keys = ownKeys(value);
    for (let at = 0; at < keys.length && rest.left > 0; at++) {
      const property = typeof keys[at] === "string" ? own(value, keys[at]) : undefined;
      if (property !== undefined && "value" in property) add(stringify(keys[at]) + ":" + digest(property.value, depth + 1, rest));
    }
    return "{" + text + "}";
  }
  const operands = { __proto__: null };
  const note = (id, value) => {
    const count = (operands[id] ?? 0) + 1;
    operands[id] = count;
    if (count > 5000) return;
    try {
      host.operand(id, wellFormed(digest(value, 0, { __proto__: null, left: 4000 })));
    } catch {
      host.operand(id, "?");
    }
  };
  const condition = (id, value) => {
    const yes = !!value, outcome = host.decide(id, yes);
    return outcome === yes ? value : outcome;
  };
  const nullish = (id, value) => {
    const yes = value !== null && value !== undefined;
    return host.decide(id, yes) || !yes ? value : undefined;
  };
  const operand = (id, value) => {
    note(id, value);
    return value;
  };
  const loop = (id, value) => {
    host.count(id, true);
    return value;
  };
  const turn = (id) => host.count(id, false);
  const select = (id, cases, value) => {
    host.count(id, true);
    note(id, value);
    const choice = host.choice(id);
    return choice < 0 ? value : cases[choice];
  };
  const caught = (id, error) => {
    const isObject = typeof error === "object" && error !== null;
    host.count(id, isObject && apply(weakGet, toolErrors, [error]) !== undefined);
  };
  const handler = (id, value) => {
    if (typeof value !== "function") return value;
    return (error) => {
      caught(id, error);
      return apply(value, undefined, [error]);
    };
  };
  // Only the first values of each derivation: what a loop computes thousands of times costs nothing more.
  const derivations = { __proto__: null };
  const derive = (id, names, value) => {
    const count = (derivations[id] ?? 0) + 1;
    derivations[id] = count;
    if (count > 50) return value;
    try {
      if (names !== 0) note(id, names());
    } catch {
      // A name that is not initialized yet.
    }
    try {
      host.derived(id, wellFormed(digest(value, 0, { __proto__: null, left: 4000 })));
    } catch {
      host.derived(id, "?");
    }
    return value;
  };

  // What natives.rs calls.
  const text = (value) => {
    try {
      return wellFormed(apply(RealString, undefined, [value]));
    } catch {
      return "";
    }
  };
  function describe(error, report) {
    const call = typeof error === "object" && error !== null ? apply(weakGet, toolErrors, [error]) : undefined;
    let name = "", message = "", trace = "";
    try {
      if (isInstance(error, RealError)) {
        name = text(error.name);
        message = text(error.message);
        trace = text(error.stack);
      } else {
        message = "the plan threw " + wellFormed(inspect(error, 1, { __proto__: null }));
      }
    } catch {
      message = message || "the plan threw a value that cannot be shown";
    }
    report(name, message, trace, call === undefined ? -1 : call);
  }
  const { failed, unhandled } = host;
  const fail = (error) => describe(error, failed);
  return {
    __proto__: null,
    run(plan) {
      try {
        const promise = plan(condition, nullish, operand, loop, turn, select, caught, handler, derive);
        apply(then, promise, [
          (value) => {
            try {
              if (value === undefined) host.done("null", true);
              else host.done(encode(value), false);
            } catch (error) {
              host.forget();
              fail(error);
            }
          },
          fail,
        ]);
      } catch (error) {
        fail(error);
      }
    },
    deliver(id, value, kind, message, place) {
      const call = pending[id];
      if (call === undefined) return;
      delete pending[id];
      if (kind === "") {
        call.resolve(parse(value));
        return;
      }
      if (kind === "recorder") {
        recorders[id] = newNode("text");
        call.resolve(recorder(recorders[id]));
        return;
      }
      const error = new ToolError(message);
      hidden(error, "server", call.server);
      hidden(error, "tool", call.tool);
      hidden(error, "kind", kind);
      hidden(error, "content", parse(value));
      hidden(error, "place", place === "" ? null : place);
      apply(weakSet, toolErrors, [error, id]);
      call.reject(error);
    },
    unhandled: (reason) => describe(reason, unhandled),
    shapes() {
      const ids = ownKeys(recorders);
      for (let at = 0; at < ids.length; at++) host.shape(+ids[at], shapeText(recorders[ids[at]], 0));
    },
    fire(id) {
      const timer = callbacks[id];
      if (timer === undefined) return;
      if (!timer.repeats) delete callbacks[id];
      try {
        apply(timer.callback, undefined, timer.values);
      } catch (error) {
        // An exception in a timer has no caller that could catch it.
        fail(error);
      }
    },
  };
})
