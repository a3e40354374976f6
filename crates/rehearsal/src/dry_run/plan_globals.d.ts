/** A call of a tool that failed. */
declare class ToolError extends Error {
  constructor(message?: string);
  /** The name of the server. */
  readonly server: string;
  /** The name of the tool. */
  readonly tool: string;
  /**
   * `tool`: the result has `isError`. `protocol`: the server answered with a JSON-RPC error, or its answer is invalid.
   * `timeout`: there was no answer within 30 s.
   */
  readonly kind: "tool" | "protocol" | "timeout";
  /** The content of the result, or the `data` of the JSON-RPC error. */
  readonly content: any;
  /** The place of the call, such as `plan.ts:5:17`. */
  readonly place: string | null;
}

interface Console {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  dir(...values: unknown[]): void;
  table(...values: unknown[]): void;
  group(...values: unknown[]): void;
  groupEnd(): void;
  assert(condition?: unknown, ...values: unknown[]): void;
  /** Does nothing in a plan. */
  time(label?: string): void;
  /** Does nothing in a plan. */
  timeEnd(label?: string): void;
  /** Does nothing in a plan. */
  timeLog(label?: string, ...values: unknown[]): void;
  /** Does nothing in a plan. */
  count(label?: string): void;
  /** Does nothing in a plan. */
  countReset(label?: string): void;
  /** Does nothing in a plan. */
  clear(): void;
}
declare var console: Console;

declare function setTimeout(callback: (...values: any[]) => unknown, delay?: number, ...values: any[]): number;
declare function setInterval(callback: (...values: any[]) => unknown, delay?: number, ...values: any[]): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(callback: () => void): void;
declare function atob(text: string): string;
declare function btoa(text: string): string;
